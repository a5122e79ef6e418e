"""What samples tell: values, times and bytes of every operator."""
