import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { ChainTip } from './chain-source.js'

/** How much of a stream is read before it is opened again, in bytes: with its comments, a server sends some 8 KB an hour. */
const MAX_STREAM_BYTES = 1024 * 1024
/** A server that sends nothing for so long is gone, in milliseconds: it sends a comment every 15 seconds. */
const IDLE_TIMEOUT = 60_000
/** The pause before a broken stream is opened again, in milliseconds: at first, and at most. */
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 60_000

const height = z.int().nonnegative()
const hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .optional()
const tipEvent = z.object({ height, hash })
const reorgEvent = z.object({
  newTip: tipEvent,
  commonAncestor: tipEvent.nullish(),
  depth: height.optional(),
})

/**
 * The event streams of a Chaintracks server: `GET /v2/tip/stream` with a header for each new tip, and `GET /v2/reorg/stream`
 * with the common ancestor of each reorganisation. A stream that breaks is opened again; what was missed meanwhile is not
 * sent again, so these events only speed up what polling finds as well.
 */
export class ChaintracksStreams {
  private readonly stopping = new AbortController()
  private running: Promise<unknown> | undefined

  constructor(
    private readonly options: {
      /** Without a slash at the end. */
      url: string
      onTip: (tip: ChainTip) => void
      idleTimeout?: number
      firstPause?: number
    },
  ) {}

  /** Opens the streams, once. */
  start(): void {
    this.running ??= Promise.all([
      this.follow('/v2/tip/stream', (event) => {
        const { data } = tipEvent.safeParse(event)
        return data && tipOf(data)
      }),
      this.follow('/v2/reorg/stream', reorgOf),
    ])
  }

  async close(): Promise<void> {
    this.stopping.abort()
    await this.running
  }

  private async follow(path: string, read: (event: unknown) => ChainTip | undefined): Promise<void> {
    const { url, onTip, firstPause = FIRST_PAUSE } = this.options
    const { signal } = this.stopping
    for (let pause = firstPause; !signal.aborted; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        for await (const event of this.events(url + path)) {
          const tip = read(event)
          if (tip !== undefined) onTip(tip)
          pause = firstPause
        }
      } catch {
        // Polling goes on, and reports a server that is gone.
      }
      await sleep(pause, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /** The events of one connection, each a JSON value after `data:`; comments keep the connection alive. */
  private async *events(url: string): AsyncGenerator<unknown> {
    const { idleTimeout = IDLE_TIMEOUT } = this.options
    const stop = new AbortController()
    const cancel = (): void => stop.abort()
    this.stopping.signal.addEventListener('abort', cancel, { once: true })
    if (this.stopping.signal.aborted) cancel()
    let timer = setTimeout(cancel, idleTimeout)
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
    // Node's `fetch` drops its own listener to the signal once the request is garbage, as in `bounded-fetch.ts`.
    const cancelBody = (): void => void reader?.cancel().catch(() => undefined)
    stop.signal.addEventListener('abort', cancelBody, { once: true })
    try {
      const headers = { Accept: 'text/event-stream' }
      const { ok, body } = await fetch(url, { headers, redirect: 'error', signal: stop.signal })
      if (!ok || body === null) return
      reader = body.getReader()
      const decoder = new TextDecoder()
      let line = ''
      let received = 0
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        clearTimeout(timer)
        timer = setTimeout(cancel, idleTimeout)
        received += read.value.length
        if (received > MAX_STREAM_BYTES) return
        // What was received before has no line break.
        const [first = '', ...others] = decoder.decode(read.value, { stream: true }).split('\n')
        const lines = [line + first, ...others]
        line = lines.pop() ?? ''
        for (const each of lines) {
          const [, data] = /^data: ?(.*?)\r?$/.exec(each) ?? []
          if (data !== undefined) yield parsed(data)
        }
      }
    } finally {
      clearTimeout(timer)
      cancel()
      this.stopping.signal.removeEventListener('abort', cancel)
    }
  }
}

/** The new tip of a reorganisation, and the height behind the common ancestor; without one, as many blocks as it is deep. */
function reorgOf(event: unknown): ChainTip | undefined {
  const { data } = reorgEvent.safeParse(event)
  if (data === undefined) return undefined
  const { newTip, commonAncestor, depth = 1 } = data
  const forkedAt = commonAncestor ? commonAncestor.height + 1 : Math.max(0, newTip.height - depth + 1)
  return { ...tipOf(newTip), forkedAt }
}

function tipOf({ height, hash }: z.output<typeof tipEvent>): ChainTip {
  return { height, ...(hash !== undefined && { hash }) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Handled like an event of another shape.
    return undefined
  }
}
