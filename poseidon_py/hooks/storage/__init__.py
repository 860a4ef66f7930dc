"""Where deliveries are stored: in memory, or in ConfigMaps of the API server."""
