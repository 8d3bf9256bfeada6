import { createHash } from 'node:crypto'
import type { Response } from 'express'
import { CHUNK_BYTES, type ContentSummary } from '../../../backend/src/graph/records.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  BASE_BYTES,
  baseOf,
  PATCH_TYPE,
  PatchError,
  patchChain,
  patched,
} from '../../../backend/src/protocol/patch.js'
import type { Steps } from '../../../backend/src/protocol/steps.js'
import { type ByteRange, SHORT_BODY } from '../../../backend/src/read/content.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { ofLength } from '../http/send-body.js'
import type { RangeReader, StoredResponse } from '../http/stored-response.js'
import { type ContentOutput, contentAt } from './content-root.js'
import { type Ahead, afterLong, LongReads, type PatchReader } from './directory.js'

/** The most patches that take several turns and are being made or wait: the longest take seconds. */
const MAX_WAITING = 100

type Made = { content: ContentSummary; bytes: Uint8Array } | PatchError

/**
 * Shows the results of patches (`docs/spec/protocol.md`, Patches). A result depends only on the outpoint of the last patch, which is
 * the cache key; its bytes are cached among bodies. On each use, it is first checked that all its parts are stored and not blocked.
 */
export class Patches implements PatchReader {
  private readonly long = new LongReads(MAX_WAITING)
  /** The time for patches in this turn of the event loop: an answer may need many. */
  private turn: TimeSlice | undefined
  /** The last result, while anything holds it: ranges of a result that is too long to cache are read one after another. */
  private last: { key: string; content: ContentSummary; bytes: WeakRef<Uint8Array> } | undefined

  constructor(private readonly options: Pick<GatewayParts, 'store' | 'maxContentBytes'>) {}

  /**
   * The result of a patch, as the content of the same output.
   *
   * @throws AnswerError if an output that it is built on is not here; PatchError; LongRead.
   */
  shown(output: ContentOutput, ahead: Ahead | undefined): ContentOutput {
    const { store } = this.options
    const known = store.consistent<ContentSummary | PatchError>(
      () => {
        const made = this.made(output, ahead)
        return made instanceof PatchError ? made : made.content
      },
      { key: keyOf(output), dependsOn: () => [], weightOf: () => 0 },
    )
    if (known instanceof PatchError) throw known
    store.guard.refuseContent(known.sha256)
    const made = { bytes: () => this.bytes(output, ahead), body: () => this.body(output, known, ahead) }
    return { ...output, content: { ...known, made } }
  }

  private bytes(output: ContentOutput, ahead?: Ahead): Uint8Array {
    const known = this.options.store.content.memory?.made(keyOf(output))
    if (known !== undefined) return known
    const made = this.made(output, ahead)
    if (made instanceof PatchError) throw made
    return made.bytes
  }

  /** The bytes, or a reader of the cached bytes: a cached response must not hold more than it weighs. */
  private body(output: ContentOutput, { length }: ContentSummary, ahead?: Ahead): StoredResponse['body'] {
    const key = keyOf(output)
    const isKept = this.options.store.content.memory?.made(key) !== undefined
    const isShort = length <= SHORT_BODY
    return isShort || (!isKept && ahead?.has(key)) ? this.bytes(output, ahead) : this.reader(output)
  }

  private reader(output: ContentOutput): RangeReader {
    const { store } = this.options
    const key = keyOf(output)
    const again = async function* (
      this: Patches,
      { from, length }: ByteRange,
      response: Response,
    ): AsyncGenerator<Uint8Array> {
      const bytes = await afterLong(response, (ahead) => this.bytes(output, ahead))
      yield bytes.subarray(from, from + length)
    }
    return (range, response) =>
      store.content.memory?.made(key)?.subarray(range.from, range.from + range.length) ??
      again.call(this, range, response)
  }

  private made(output: ContentOutput, ahead: Ahead | undefined): Made {
    const key = keyOf(output)
    const { long } = this
    try {
      // Read for each answer, as a part may have been blocked or removed.
      const chain = patchChain(output, (each) => this.base(each))
      const known = (ahead?.get(key) as Made | undefined) ?? this.recent(key)
      if (known !== undefined) return known
      const steps = this.making(key, chain)
      for (const slice = this.thisTurn(); !slice.isOver && !long.isReading(key); ) {
        const step = steps.next()
        if (step.done === true) return step.value
      }
      // A started result holds memory, which waiting ones must not.
      const begun = long.isBusy ? undefined : steps
      return long.await(key, () => begun ?? this.making(key, chain))
    } catch (error) {
      return patchErrorOf(error)
    }
  }

  private recent(key: string): Made | undefined {
    if (this.last?.key !== key) return undefined
    const bytes = this.last.bytes.deref()
    return bytes && { content: this.last.content, bytes }
  }

  private thisTurn(): TimeSlice {
    if (this.turn === undefined)
      setImmediate(() => {
        this.turn = undefined
      })
    this.turn ??= new TimeSlice()
    return this.turn
  }

  private *making(key: string, chain: readonly ContentOutput[]): Steps<Made> {
    try {
      return yield* this.steps(key, chain)
    } catch (error) {
      return patchErrorOf(error)
    }
  }

  private *steps(key: string, chain: readonly ContentOutput[]): Steps<Made> {
    const { store, maxContentBytes } = this.options
    const parts = chain.map(({ outpoint, content }) => ({
      ...{ outpoint, length: content.length },
      read: () => wholeBody(store, content),
    }))
    const bytes = yield* patched(parts, maxContentBytes)
    const hash = createHash('sha256')
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      hash.update(bytes.subarray(at, at + CHUNK_BYTES))
      yield
    }
    store.content.memory?.keepMade(key, bytes)
    const { contentType = UNTYPED } = chain[0]?.content ?? {}
    const content = { sha256: hash.digest('hex'), length: bytes.length, contentType }
    this.last = { key, content, bytes: new WeakRef(bytes) }
    return { content, bytes }
  }

  private base({ content }: ContentOutput): ContentOutput | undefined {
    if (content.contentType !== PATCH_TYPE) return undefined
    const { store } = this.options
    const start = { from: 0, length: Math.min(BASE_BYTES, content.length) }
    const outpoint = baseOf(joinBytes([...store.content.chunks(content.sha256, start)]))
    const base = contentAt(store, { kind: 'outpoint', outpoint })
    if (base !== undefined) return base
    const place = formatOutpoint(outpoint)
    throw new AnswerError('NOT_FOUND', `this store does not have ${place}, which a patch is built on`)
  }
}

function patchErrorOf(error: unknown): PatchError {
  if (error instanceof PatchError) return error
  throw error
}

/** The key of a patch's result. No path begins like this. */
function keyOf({ outpoint }: ContentOutput): string {
  return `patch ${formatOutpoint(outpoint)}`
}

function* wholeBody(store: GraphReads, { sha256, length }: ContentSummary): Steps<Uint8Array> {
  const body = new Uint8Array(length)
  let at = 0
  for (const chunk of ofLength(store.content.chunks(sha256), { sha256, length })) {
    body.set(chunk, at)
    at += chunk.length
    yield
  }
  return body
}
