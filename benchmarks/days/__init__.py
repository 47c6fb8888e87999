"""Days of 1,000 to 100,000 jobs over 200 pools and 100 shares, and which limit of AWS they meet first."""
