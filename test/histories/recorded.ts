import { readFileSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import type { SightingRecord } from '../../backend/src/graph/conflict-resolution.js'
import { fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import type { HeaderChain } from '../support/server/header-chain.js'
import type { BlockedItem } from './answers.js'
import type { Proof } from './decision.js'
import { type Answer, ask, type Differences, Host, type Question } from './host.js'
import type { Model, ModelOptions } from './model.js'
import { comparable, differencesOf } from './questions.js'

// Histories as they were done to a host, down to the bytes, and what it answered: they need neither the generator nor the store
// that was there when they were recorded.

/** What was done to a host, and what it said to that. */
type Step =
  /** The headers of the chain from a height on, in hex, in place of those that it had there. */
  | { kind: 'headers'; from: number; headers: string[] }
  | { kind: 'submit'; beef: string; topics: readonly string[]; answer: unknown }
  | { kind: 'ingest'; txid: string; path: string; answer: number }
  | { kind: 'sight'; record: SightingRecord }
  | { kind: 'block' | 'unblock'; item: BlockedItem }
  | { kind: 'follow' | 'release' }

export interface RecordedHistory {
  steps: Step[]
  questions: { question: Question; answer: unknown }[]
}

const FILE = new URL('recorded/wide.json.br', import.meta.url)

export function readRecorded(): RecordedHistory[] {
  return JSON.parse(brotliDecompressSync(readFileSync(FILE)).toString('utf8')) as RecordedHistory[]
}

export function writeRecorded(histories: RecordedHistory[]): void {
  const params = {
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
  }
  writeFileSync(FILE, brotliCompressSync(JSON.stringify(histories), { params }))
}

/** Passes everything on to a host, and writes down what was done and answered. */
export class RecordingHost extends Host {
  readonly history: RecordedHistory = { steps: [], questions: [] }
  private readonly known = new Map<number, string>()

  constructor(
    private readonly host: Host,
    private readonly chain: HeaderChain,
  ) {
    super()
  }

  get url(): string {
    return this.host.url
  }

  override get model(): ModelOptions {
    return this.host.model
  }

  override heard = (question: Question, answer: Answer): void => {
    const shown = comparable(question, answer)
    if (shown !== undefined) this.history.questions.push({ question, answer: shown })
  }

  override async submitBeef(beef: Uint8Array, topics: readonly string[]): Promise<Answer> {
    const answer = await this.passOn(() => this.host.submitBeef(beef, topics))
    this.history.steps.push({ kind: 'submit', beef: toHex(beef), topics, answer: answeredBy(answer) })
    return answer
  }

  override async ingest(txid: string, path: string): Promise<Answer> {
    const answer = await this.passOn(() => this.host.ingest(txid, path))
    this.history.steps.push({ kind: 'ingest', txid, path, answer: answer.status })
    return answer
  }

  override async sight(record: SightingRecord): Promise<boolean> {
    this.history.steps.push({ kind: 'sight', record })
    return await this.passOn(() => this.host.sight(record))
  }

  override async block(item: BlockedItem): Promise<Answer> {
    this.history.steps.push({ kind: 'block', item })
    return await this.passOn(() => this.host.block(item))
  }

  override async unblock(item: BlockedItem): Promise<Answer> {
    this.history.steps.push({ kind: 'unblock', item })
    return await this.passOn(() => this.host.unblock(item))
  }

  override async follow(height: number): Promise<void> {
    await this.passOn(() => this.host.follow(height))
    this.history.steps.push({ kind: 'follow' })
  }

  override async release(): Promise<void> {
    await this.passOn(async () => await this.host.release?.())
    this.history.steps.push({ kind: 'release' })
  }

  override async fateOf(txid: string, proof: Proof): ReturnType<Host['fateOf']> {
    return await this.host.fateOf(txid, proof)
  }

  override async storedDifferences(model: Model): Promise<Differences> {
    return (await this.host.storedDifferences?.(model)) ?? {}
  }

  /** Notes first what the chain has got since the last step. */
  private async passOn<Result>(step: () => Promise<Result>): Promise<Result> {
    const blocks = [...this.chain.branch.blocks()].reverse()
    const parted = blocks.findIndex(({ header }) => this.known.get(header.height) !== header.hash)
    const changed = parted === -1 ? [] : blocks.slice(parted)
    const [first] = changed
    if (first !== undefined) {
      const headers = changed.map(({ header }) => toHex(header.bytes))
      this.history.steps.push({ kind: 'headers', from: first.header.height, headers })
    }
    for (const { header } of changed) this.known.set(header.height, header.hash)
    return await step()
  }
}

/** A chain as it was recorded. */
export class RecordedChain {
  private readonly headers = new Map<number, Uint8Array>()
  private tip = 0

  get bestTip(): { height: number } {
    return { height: this.tip }
  }

  rootAt(height: number): string | undefined {
    const bytes = height > this.tip ? undefined : this.headers.get(height)
    return bytes && toHex(bytes.slice(36, 68).reverse())
  }

  replaceFrom(from: number, headers: readonly string[]): void {
    for (const [at, header] of headers.entries()) this.headers.set(from + at, fromHex(header))
    this.tip = from + headers.length - 1
  }
}

/** Does to a host what was recorded, and asks it the same. */
export async function replay(
  { steps, questions }: RecordedHistory,
  { host, chain }: { host: Host; chain: RecordedChain },
): Promise<Differences> {
  const got: Record<string, unknown> = {}
  const expected: Record<string, unknown> = {}
  for (const [at, step] of steps.entries()) {
    switch (step.kind) {
      case 'headers':
        chain.replaceFrom(step.from, step.headers)
        break
      case 'submit':
        got[`step ${at}: submit`] = answeredBy(await host.submitBeef(fromHex(step.beef), step.topics))
        expected[`step ${at}: submit`] = ofTopics(step.answer, step.topics)
        break
      case 'ingest':
        got[`step ${at}: ingest`] = (await host.ingest(step.txid, step.path)).status
        expected[`step ${at}: ingest`] = step.answer
        break
      case 'sight':
        await host.sight(step.record)
        break
      case 'block':
      case 'unblock':
        await host[step.kind](step.item)
        break
      case 'follow':
        await host.follow(0)
        break
      case 'release':
        await host.release?.()
    }
    await host.untilIdle()
  }
  for (const { question, answer } of questions) {
    const as = `${question.path} ${question.body ?? ''}`
    got[as] = comparable(question, await ask(host.url, question))
    expected[as] = answer
  }
  return differencesOf(got, expected)
}

/** An answer to a submission without the topics that were not named: when it was recorded, it had `tm_ordinals` beside `tm_names`. */
function ofTopics(answer: unknown, topics: readonly string[]): unknown {
  if (typeof answer !== 'object' || answer === null) return answer
  return Object.fromEntries(Object.entries(answer).filter(([topic]) => topics.includes(topic)))
}

/** What was admitted, or the status where it is no 200. */
function answeredBy({ status, body }: Answer): unknown {
  if (status !== 200) return status
  const steak = JSON.parse(body.toString('utf8')) as Record<string, { outputsToAdmit: number[] }>
  return Object.fromEntries(
    Object.entries(steak).map(([topic, { outputsToAdmit }]) => [
      topic,
      outputsToAdmit.toSorted((a, b) => a - b),
    ]),
  )
}
