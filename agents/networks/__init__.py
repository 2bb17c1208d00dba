"""Networks: torsos, the recurrent core, language, and the layers they are made of."""
