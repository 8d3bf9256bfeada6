/** The text with its percent-escapes decoded once; undefined where one is broken. What that means, the caller says. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // It throws for broken escapes alone.
    return undefined
  }
}
