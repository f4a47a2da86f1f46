"""Rules, alerts and the way they take to the operator, with the programs of Prometheus themselves."""
