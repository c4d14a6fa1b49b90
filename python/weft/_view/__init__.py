"""Programs and profiles as pages of HTML: data, and the files that draw it."""
