"""HTTP as the user's pip, uv and apt are set up, and the archives that it reaches."""
