import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'

/** Text is sent in chunks of at least this many characters: the items of a list are short and many. */
const CHARACTERS_PER_CHUNK = 64 * 1024

/**
 * The JSON of a list or an object, from that of its items, in chunks. Undefined items are left out. Reads are synchronous: without
 * yielding, other requests would wait for the last item.
 */
export async function* jsonChunks<Asked>(
  all: readonly Asked[],
  brackets: '[]' | '{}',
  itemOf: (asked: Asked) => Promise<string | undefined> | string | undefined,
): AsyncGenerator<string> {
  const slice = new TimeSlice()
  let chunk = brackets.charAt(0)
  let separator = ''
  for (const asked of all) {
    const item = await itemOf(asked)
    await slice.yieldIfOver()
    if (item === undefined) continue
    chunk += separator + item
    separator = ','
    if (chunk.length < CHARACTERS_PER_CHUNK) continue
    yield chunk
    chunk = ''
  }
  yield chunk + brackets.charAt(1)
}
