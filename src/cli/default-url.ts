/** Where a server listens that was started with the same settings on this machine. */
export const DEFAULT_URL = `http://127.0.0.1:${process.env.PORT || 8080}`
