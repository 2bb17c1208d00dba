"""What `launch.report` shows: runs read from their folders, figures of them, the page around."""
