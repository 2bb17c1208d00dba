"""DeepMind Lab, whose engines are processes of their own."""
