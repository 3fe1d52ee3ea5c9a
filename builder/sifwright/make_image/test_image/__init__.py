"""Test an image before it is published, or at any later time."""
