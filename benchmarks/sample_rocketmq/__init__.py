"""What one sample of a large RocketMQ broker costs."""
