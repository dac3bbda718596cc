"""The questions of pages by what they are about; `ApiClient` asks them all."""
