import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import type { SightingRecord } from '../../backend/src/graph/conflict-resolution.js'
import { fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import type { BlockedItem } from './answers.js'
import { type Answer, ask, type Differences, type Host, type Question } from './host.js'
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
