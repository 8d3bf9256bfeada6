/** The pieces, as long as they add up to `length` bytes: a body that is short is an error, never a short answer. */
export async function* wholeRange(
  pieces: AsyncIterable<Uint8Array>,
  length: number,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    sent += piece.length
    yield piece
  }
  if (sent !== length) throw shortOf(length, sent)
}

export function shortOf(length: number, held: number): Error {
  return new Error(`the store has ${held} of the ${length} bytes to send`)
}
