import { chunksOf } from '../../client/bounded-fetch.js'
import { BackgroundJob } from './background.js'

/** How much of a stream is read before it is reopened, in bytes: with comments, a server sends some 8 KB an hour. */
const MAX_STREAM_BYTES = 1024 * 1024
/** A server that sends nothing for this long is gone, in milliseconds: it sends a comment every 15 seconds. */
const IDLE_TIMEOUT = 60_000
/** The first and the longest pause before a broken stream is reopened, in milliseconds. */
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 60_000

/**
 * The event stream of a Chaintracks server, `GET /v2/tip/stream`, with an event for each new tip, on any branch. A stream that
 * breaks is reopened, but missed events are lost: events only speed up what polling finds as well.
 */
export function chaintracksStream(options: {
  /** Without a trailing slash. */
  url: string
  onTip: () => void
  idleTimeout?: number
  firstPause?: number
}): BackgroundJob {
  const { url, onTip, idleTimeout = IDLE_TIMEOUT, firstPause = FIRST_PAUSE } = options
  let next = firstPause
  return new BackgroundJob(async (stopping) => {
    try {
      for await (const _ of events(`${url}/v2/tip/stream`, { idleTimeout, stopping })) {
        onTip()
        next = firstPause
      }
    } catch {
      // Polling continues, and reports a server that is gone.
    }
    const pause = next
    next = Math.min(2 * pause, LONGEST_PAUSE)
    return pause
  })
}

/** The events of one connection, each a line that starts with `data:`; comments keep the connection alive. */
async function* events(
  url: string,
  { idleTimeout, stopping }: { idleTimeout: number; stopping: AbortSignal },
): AsyncGenerator<void> {
  const over = new AbortController()
  const idle = setTimeout(() => over.abort(), idleTimeout)
  const signal = AbortSignal.any([over.signal, stopping])
  try {
    const headers = { Accept: 'text/event-stream' }
    const { ok, body } = await fetch(url, { headers, redirect: 'error', signal })
    if (!ok) return
    const decoder = new TextDecoder()
    let line = ''
    let received = 0
    for await (const chunk of chunksOf(body, signal)) {
      idle.refresh()
      received += chunk.length
      if (received > MAX_STREAM_BYTES) return
      // The text received before has no line break.
      const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n')
      const lines = [line + first, ...others]
      line = lines.pop() ?? ''
      for (const each of lines) if (each.startsWith('data:')) yield
    }
  } finally {
    clearTimeout(idle)
    over.abort()
  }
}
