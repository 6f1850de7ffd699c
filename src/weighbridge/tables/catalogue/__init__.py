"""catalogue.zip: one member a model, packed by scripts/build_catalogue and read by weighbridge.sources.catalogue."""
