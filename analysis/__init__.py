"""What reads run folders and starts nothing."""
