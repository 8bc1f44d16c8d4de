package published
