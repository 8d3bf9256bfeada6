import type { GraphStore } from '../graph/graph-store.js'
import type { FailedHook } from '../graph/hook-outbox.js'
import { memoizeByObject } from '../graph/memoize-by-object.js'
import type { OutputAdmittedByTopic, OutputSpent } from '../graph/overlay-interfaces.js'
import { type BeefContents, readBeef, seenBeefs, syncedBeefs } from '../graph/read-beef.js'
import { type GraphRecords, graphRecords } from '../graph/records.js'
import { isLooseMint } from '../graph/topic-rules.js'
import { knownTransactions, spendsOf } from '../graph/transaction-records.js'
import type { Deployment } from '../protocol/mint.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { HookRetries, type HookRetriesOptions } from './hook-retries.js'

/** How a service retries hooks that failed. */
export type RetryOptions = Pick<HookRetriesOptions, 'outbox' | 'missed' | 'onHookFailure' | 'times'>

export interface HooksOptions {
  service: string
  admit: (payload: OutputAdmittedByTopic) => Promise<void>
  evict: (outpoint: Outpoint) => Promise<void>
  spend?: (payload: OutputSpent) => Promise<void>
  retries: RetryOptions | undefined
}

/**
 * Stores what a BEEF brings. What of it the topics admit, the store derives, now or when more is known. The whole backlog that
 * the write leaves is worked off, as no host calls a hook again for it.
 *
 * A mint that nodes disagree about is left out as long as it is not mined.
 */
export async function recordBeef(
  writer: Pick<GraphStore, 'record' | 'backlog'>,
  beef: BeefContents,
  deployment: Deployment | undefined,
): Promise<void> {
  const recorded = recordedBy(writer)
  const known = recorded.get(beef) ?? writeBeef(writer, beef, deployment)
  recorded.set(beef, known)
  try {
    await known
  } catch (error) {
    recorded.delete(beef)
    throw error
  }
}

/** What has been recorded: engines call a hook for each output and each service, with the same transaction. */
const recordedBy = memoizeByObject((_writer: object) => new WeakMap<BeefContents, Promise<void>>())

async function writeBeef(
  writer: Pick<GraphStore, 'record' | 'backlog'>,
  beef: BeefContents,
  deployment: Deployment | undefined,
): Promise<void> {
  const transactions = knownTransactions(beef)
  if (deployment !== undefined && beef.proof(beef.subject.txid) === undefined) {
    const unproven = transactions.filter(({ proof }) => proof === undefined)
    const isLoose = ({ txid }: { txid: string }): boolean => {
      const transaction = beef.transaction(txid)
      return transaction !== undefined && isLooseMint(transaction, deployment)
    }
    if (unproven.some(isLoose)) return
  }
  await recordAll(writer, graphRecords({ transactions, spends: spendsOf(transactions, beef) }))
}

/** Writes records, and works off the backlog. */
export async function recordAll(
  writer: Pick<GraphStore, 'record' | 'backlog'>,
  records: GraphRecords,
): Promise<void> {
  await writer.record(records)
  await workOffAll(writer)
}

async function workOffAll({ backlog }: Pick<GraphStore, 'backlog'>): Promise<void> {
  while (await backlog.workOff()) {
    // Each call does a part of it.
  }
}

/** Where services record what engines evict. */
export type EvictionWriter = Pick<GraphStore, 'evict' | 'backlog' | 'sightings'> & {
  transactions: Pick<GraphStore['transactions'], 'heightOf'>
}

/**
 * Records that an engine evicts an output. If its transaction has a proof, the output is blocked. Otherwise the network has
 * rejected the transaction, as far as the engine knows (from 2.6 on, callbacks of ARC evict): a proof or a sighting brings it
 * back.
 */
export async function recordEviction(writer: EvictionWriter, outpoint: Outpoint): Promise<void> {
  const { txid } = outpoint
  if ((await writer.transactions.heightOf(txid)) !== undefined) {
    await writer.evict(outpoint)
    return
  }
  await writer.sightings.record([{ txid, status: 'rejected' }])
  await workOffAll(writer)
}

/** The hooks of a lookup service; one that fails is put into the outbox and retried. */
export class Hooks {
  private readonly retries: HookRetries | undefined

  constructor(private readonly options: HooksOptions) {
    const { service, retries } = options
    this.retries = retries && new HookRetries({ ...retries, service, retry: (failed) => this.retry(failed) })
  }

  async admitted(payload: OutputAdmittedByTopic): Promise<void> {
    const { service, admit } = this.options
    const full =
      payload.mode === 'whole-tx' ? { ...payload, atomicBEEF: asReceived(payload.atomicBEEF) } : payload
    await this.run(
      () => failedAdmission(service, full),
      () => admit(full),
    )
  }

  async spent(payload: OutputSpent): Promise<void> {
    const { service, spend } = this.options
    const full =
      payload.mode === 'whole-tx'
        ? { ...payload, spendingAtomicBEEF: asReceived(payload.spendingAtomicBEEF) }
        : payload
    await this.run(
      () => failedSpend(service, full),
      async () => await spend?.(full),
    )
  }

  async evicted(outpoint: Outpoint): Promise<void> {
    const { service, evict } = this.options
    await this.run(
      () => ({ service, hook: 'evicted', outpoint }),
      () => evict(outpoint),
    )
  }

  async close(): Promise<void> {
    await this.retries?.close()
  }

  private async run(failedHook: () => FailedHook, work: () => Promise<void>): Promise<void> {
    if (this.retries === undefined) await work()
    else await this.retries.run(failedHook, work)
  }

  private async retry(failed: FailedHook): Promise<void> {
    const { admit, spend, evict } = this.options
    if (failed.hook === 'admitted') await admit(admissionOf(failed))
    else if (failed.hook === 'spent') await spend?.(spendOf(failed))
    else await evict(failed.outpoint)
  }
}

/** The BEEF as the topic manager received it: the engine passes on only part of it. */
function asReceived(beef: number[]): number[] {
  return seenBeefs.complete(beef) as number[]
}

/**
 * The BEEF of an admission.
 *
 * @throws Error if the payload has no transaction: these services ask for whole-tx payloads.
 */
export function admittedBeef(payload: OutputAdmittedByTopic): BeefContents {
  if (payload.mode === 'whole-tx') return syncedBeefs.withSources(readBeef(payload.atomicBEEF))
  throw new Error(`the notice for ${payload.txid} has no transaction: this service needs whole-tx notices`)
}

/** The BEEF of a spend; undefined if the payload has none. */
export function spendingBeef(payload: OutputSpent): BeefContents | undefined {
  return payload.mode === 'whole-tx'
    ? syncedBeefs.withSources(readBeef(payload.spendingAtomicBEEF))
    : undefined
}

/** @throws Error if the payload has no transaction: then the host must have it. */
function failedAdmission(service: string, payload: OutputAdmittedByTopic): FailedHook {
  if (payload.mode !== 'whole-tx') throw new Error('a notice without its transaction cannot be retried')
  const { topic, outputIndex: vout, atomicBEEF } = payload
  const { txid } = readBeef(atomicBEEF).subject
  return { service, hook: 'admitted', topic, outpoint: { txid, vout }, beef: Uint8Array.from(atomicBEEF) }
}

/** @throws Error if the payload does not say what spends. */
function failedSpend(service: string, payload: OutputSpent): FailedHook {
  const { topic, txid, outputIndex: vout } = payload
  const spent = { service, hook: 'spent', topic, outpoint: { txid, vout } } as const
  if (payload.mode === 'whole-tx') {
    const { spendingAtomicBEEF } = payload
    const spender = readBeef(spendingAtomicBEEF).subject.txid
    return { ...spent, spender, beef: Uint8Array.from(spendingAtomicBEEF) }
  }
  if (payload.mode === 'none') throw new Error('a notice without the spending txid cannot be retried')
  return { ...spent, spender: payload.spendingTxid }
}

function admissionOf({ topic, outpoint, beef }: FailedHook & { hook: 'admitted' }): OutputAdmittedByTopic {
  return { mode: 'whole-tx', topic, outputIndex: outpoint.vout, atomicBEEF: numbersOf(beef) }
}

function spendOf({ topic, outpoint, spender, beef }: FailedHook & { hook: 'spent' }): OutputSpent {
  const spent = { topic, txid: outpoint.txid, outputIndex: outpoint.vout }
  if (beef === undefined) return { ...spent, mode: 'txid', spendingTxid: spender }
  return { ...spent, mode: 'whole-tx', spendingAtomicBEEF: numbersOf(beef) }
}

/** The SDK declares arrays of numbers; `readBeef` takes bytes as well. */
function numbersOf(beef: Uint8Array): number[] {
  return beef as unknown as number[]
}
