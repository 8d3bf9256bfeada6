import type { AdmissionRecord } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { TOPICS } from '../../protocol/profile.js'
import { admissionOf, admissionsAmong, lastScore, SCORES } from '../read/admissions.js'
import { isRebuilding } from '../read/settings.js'
import { inParts, outpointColumns } from '../rows/columns.js'
import { anyOf, type RowWriter } from '../rows/rows.js'

/**
 * Gives out scores, by which peers page through what a topic offers (`docs/sync.md`). Each is given once in the life of a store,
 * and is higher than all before it. They come from a counter in the store and are given inside its writes, of which there is
 * one at a time: whatever the clocks of the processes that share it say, no output gets a score that a peer has passed.
 */
export class Scores {
  private last: number | undefined
  private isChanged = false

  constructor(private readonly rows: RowWriter) {}

  async next(): Promise<number> {
    this.last ??= (await lastScore(this.rows)) ?? (await firstBase(this.rows))
    this.isChanged = true
    return ++this.last
  }

  /** Notes scores that were given elsewhere, so that those given here are higher. */
  async note(given: AdmissionRecord[]): Promise<void> {
    const highest = given.reduce((most, { score }) => Math.max(most, score), 0)
    if (highest <= (this.last ?? -1)) return
    this.last ??= (await lastScore(this.rows)) ?? 0
    if (highest <= this.last) return
    this.last = highest
    this.isChanged = true
  }

  /** Peers may be offered these transactions' outputs again: gives them new scores, as peers may have passed the old ones. */
  async renewTransactions(txids: string[]): Promise<void> {
    const rows = await inParts(txids, (part) => this.rows.all('graph_admissions', { txid: anyOf(part) }))
    await this.renew(rows.map(admissionOf))
  }

  /** The same of single outputs; those that no topic holds have none. */
  async renewOutputs(outpoints: Outpoint[]): Promise<void> {
    await this.renew(await admissionsAmong(this.rows, outpoints))
  }

  /** Stores the counter, at the end of the write. */
  async write(): Promise<void> {
    if (!this.isChanged) return
    this.isChanged = false
    await this.rows.put('graph_settings', { ...SCORES, value: String(this.last) })
  }

  /** Their order stays: parents come before their children. */
  async renew(admissions: AdmissionRecord[]): Promise<void> {
    if (admissions.length === 0 || (await isRebuilding(this.rows))) return
    for (const { outpoint, topic } of admissions.toSorted(byScore)) {
      const key = { ...outpointColumns(outpoint), topic }
      await this.rows.update('graph_admissions', key, { score: await this.next() })
      await yieldBetweenStatements()
    }
  }
}

/**
 * What the scores of a store count from: the time when it gave the first one, in milliseconds, so that it is higher than what
 * peers know of an earlier store at this address, or of times that were scores once.
 */
async function firstBase(rows: RowWriter): Promise<number> {
  const sort = { score: -1, txid: -1, vout: -1 } as const
  const highest = await Promise.all(
    Object.values(TOPICS).map((topic) =>
      rows.first('graph_admissions', { topic, score: { $gte: 0 } }, { sort, fields: Object.keys(sort) }),
    ),
  )
  return Math.max(Date.now(), ...highest.map((row) => Number(row?.score ?? 0)))
}

const FIRST_TXID = Buffer.alloc(32)

/** Gives each admission of a store a score of its own, in the same order, where scores were times: many had the same one. */
export async function replaceTimes(rows: RowWriter): Promise<void> {
  if ((await lastScore(rows)) !== undefined) return
  const scores = new Scores(rows)
  await scores.renew((await rows.all('graph_admissions', { txid: { $gte: FIRST_TXID } })).map(admissionOf))
  await scores.write()
}

function byScore(a: AdmissionRecord, b: AdmissionRecord): number {
  return a.score - b.score || (formatOutpoint(a.outpoint) < formatOutpoint(b.outpoint) ? -1 : 1)
}
