"""What `train_tables.py` and `mixup_laplace.py` share: data, networks and losses, measures."""
