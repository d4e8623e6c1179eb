"""What tests of every package share: where test data is, processes, Qt kept out."""
