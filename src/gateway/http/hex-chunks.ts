/** How many bytes are written as hex at a time. */
const HEX_CHUNK = 64 * 1024

/** Bytes as hex, in chunks. */
export function* hexChunks(parts: Iterable<{ bytes: Uint8Array }>): Generator<string> {
  for (const { bytes } of parts)
    for (let at = 0; at < bytes.length; at += HEX_CHUNK)
      yield Buffer.from(bytes.subarray(at, at + HEX_CHUNK)).toString('hex')
}
