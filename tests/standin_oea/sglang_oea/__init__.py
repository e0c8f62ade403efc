"""The plug-in of the stand-in server: answers for proof as the real one does, re-routes nothing."""
