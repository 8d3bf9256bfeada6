import type { Admission } from '../chain/ancestors/ancestors.js'
import type { Node } from '../server/node.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'
import { admitBeef, admitTrusted } from '../server/writer/admit.js'
import { CommandError } from './command.js'
import { type FoundFiles, type FoundTransaction, findTransactions } from './import-files.js'
import { type CommandOutput, grouped } from './output.js'
import { whenReady } from './ready-node.js'

export interface ImportOptions {
  /** Opens the store, once all arguments are validated. */
  open(): Promise<Node>
  paths: string[]
  /** Accepts raw transactions without a proof. */
  trust: boolean
  output: CommandOutput
  signal: AbortSignal
}

type Outcome =
  | { status: 'admitted'; outputs: number }
  | { status: 'known' }
  /** No topic admits any of it. It spends transactions that are missing from the store and the files, and may change that. */
  | { status: 'waiting'; reason: string; missing: string[] }
  /** No topic admits any of it; it is only needed by the spenders of its outputs. */
  | { status: 'source' }
  | { status: 'refused'; reason: string }

/** How many proven transactions are submitted at once, so that they share writes, and the most bytes that they have together. */
const AT_ONCE = 128
const BYTES_AT_ONCE = 4 * 1024 ** 2

/** A transaction whose admission is in progress. */
interface Started {
  transaction: FoundTransaction
  bytes: number
  admission: Promise<Admission>
}

/** Refusals that may change once the spent transactions are known. */
const OPEN_CODES = new Set(['NO_NODE_SPENT', 'NO_ORDINAL'])

/**
 * Admits the transactions in files, parents first, and reports the outcome for each.
 *
 * @throws CommandError if a path cannot be read, before a store is opened; if anything was refused, or nothing
 * was admitted; the reason of the signal, after the report.
 */
export async function runImport({ open, paths, trust, output, signal }: ImportOptions): Promise<void> {
  const found = await output.showing((line) =>
    findTransactions(paths, (done, of) =>
      line.update(() => ({ text: `read ${grouped(done)} of ${grouped(of)} files`, share: done / of })),
    ),
  )
  if (found.transactions.length === 0) {
    report({ found, counts: countOf([]), listed: [], output })
    throw new CommandError('the files hold no transactions', { exit: 'refused' })
  }
  const node = await open()
  const importing = new Import({ node, found, trust, output, signal })
  await whenReady(node, { output, signal }, () => importing.run())
}

class Import {
  private readonly done: Outcome['status'][] = []
  private outputs = 0
  private readonly open: { transaction: FoundTransaction; admission: Admission }[] = []
  private readonly listed: Listed[] = []

  constructor(
    private readonly options: Omit<ImportOptions, 'open' | 'paths'> & { node: Node; found: FoundFiles },
  ) {}

  async run(): Promise<void> {
    const { found, output, signal } = this.options
    const all = found.transactions.length
    await output.showing(async (line) => {
      let done = 0
      for await (const { transaction, admission } of this.admitAll()) {
        if (admission.kind === 'admitted' || admission.kind === 'known')
          this.record(transaction, outcomeOf(admission))
        else this.open.push({ transaction, admission })
        done++
        line.update(() => ({
          text: `${grouped(done)} of ${grouped(all)} transactions`,
          share: done / all,
        }))
      }
    })
    // At the end, since later transactions may have changed the outcome.
    const sources = new Set(found.transactions.flatMap((transaction) => transaction.sources))
    for (const { transaction, admission } of this.open)
      this.record(transaction, await this.judge(transaction, admission, sources))
    const counts = countOf(this.done, this.outputs)
    report({ found, counts, listed: this.listed, output })
    signal.throwIfAborted()
    if (counts.refused > 0)
      throw new CommandError(`${counts.refused} of ${all} transactions refused`, { exit: 'refused' })
    if (counts.admitted + counts.known === 0)
      throw new CommandError('nothing was admitted', { exit: 'refused' })
  }

  /**
   * Admits all transactions, in their order, until the signal: many proven ones at once, each other alone, because the first of
   * two that spend the same coin counts.
   */
  private async *admitAll(): AsyncGenerator<{ transaction: FoundTransaction; admission: Admission }, void> {
    const { found, signal } = this.options
    const started: Started[] = []
    let bytes = 0
    const isFull = (next: number): boolean => started.length >= AT_ONCE || bytes + next > BYTES_AT_ONCE
    const first = async ({ transaction, admission, bytes: done }: Started) => {
      const admitted = await admission
      bytes -= done
      return { transaction, admission: admitted }
    }
    try {
      for (const transaction of found.transactions) {
        if (signal.aborted) break
        const length = found.bytesWithSources(transaction)
        const isAlone = !found.isProven(transaction)
        while (started.length > 0 && (isAlone || isFull(length)))
          yield await first(started.shift() as Started)
        const admission = this.admit(transaction)
        // Awaited later, in order.
        admission.catch(() => {})
        bytes += length
        started.push({ transaction, bytes: length, admission })
        if (isAlone) yield await first(started.shift() as Started)
      }
      while (started.length > 0) yield await first(started.shift() as Started)
    } finally {
      await Promise.allSettled(started.map(({ admission }) => admission))
    }
  }

  private async admit(transaction: FoundTransaction): Promise<Admission> {
    const { node, found, trust } = this.options
    const { txid } = transaction
    if (!found.isInBeef(transaction)) {
      if (!trust)
        return {
          kind: 'refused',
          why: 'NO_PROOF: a raw transaction; use --trust to accept it without a proof',
        }
      return await admitTrusted(node, { txid, raw: await found.raw(transaction) })
    }
    let first: Admission | undefined
    for await (const beef of found.beefsOf(transaction)) {
      const admission = await admitBeef(node, { txid, beef: () => beef })
      if (admission.kind !== 'refused') return admission
      first ??= admission
    }
    return first ?? { kind: 'refused', why: 'BAD_BEEF: its file no longer holds it' }
  }

  private async judge(
    { txid, sources }: FoundTransaction,
    admission: Admission,
    needed: ReadonlySet<string>,
  ): Promise<Outcome> {
    const { node } = this.options
    const admitted = (await node.graph.admissions.ofTransaction(txid)).length
    if (admitted > 0 && admission.kind === 'passed over') return { status: 'admitted', outputs: admitted }
    if (admission.kind !== 'passed over') return outcomeOf(admission)
    const isOpen = admission.codes.every((code) => OPEN_CODES.has(code))
    if (isOpen && needed.has(txid)) return { status: 'source' }
    const missing = isOpen ? await this.missing(sources) : []
    if (missing.length > 0) return { status: 'waiting', reason: admission.why, missing }
    return { status: 'refused', reason: admission.why }
  }

  /** The spent transactions that neither the store nor the files have. */
  private async missing(sources: readonly string[]): Promise<string[]> {
    const { node, found } = this.options
    const missing: string[] = []
    for (const source of sources) {
      if (!found.has(source) && (await node.graph.transactions.get(source)) === undefined)
        missing.push(source)
    }
    return missing
  }

  private record({ txid }: FoundTransaction, outcome: Outcome): void {
    const { output } = this.options
    this.done.push(outcome.status)
    if (outcome.status === 'admitted') this.outputs += outcome.outputs
    if (outcome.status === 'waiting' || outcome.status === 'refused') this.listed.push({ txid, ...outcome })
    if (output.json) output.result({ txid, ...outcome })
  }
}

type Listed = { txid: string } & Extract<Outcome, { reason: string }>

function outcomeOf(admission: Admission): Outcome {
  if (admission.kind === 'admitted') return { status: 'admitted', outputs: admission.outputs }
  if (admission.kind === 'known') return { status: 'known' }
  return { status: 'refused', reason: admission.why }
}

type Counts = Record<Outcome['status'] | 'outputs', number>

function countOf(statuses: readonly Outcome['status'][], outputs = 0): Counts {
  const counts = { admitted: 0, known: 0, waiting: 0, source: 0, refused: 0, outputs }
  for (const status of statuses) counts[status]++
  return counts
}

function report(options: {
  found: FoundFiles
  counts: Counts
  listed: readonly Listed[]
  output: CommandOutput
}): void {
  const { found, counts, listed, output } = options
  const { transactions, skipped } = found
  const { admitted, outputs, known, source, waiting, refused } = counts
  const linesOf = (status: Listed['status']): string[] =>
    listed
      .filter((each) => each.status === status)
      .map((each) => {
        const { txid, reason } = each
        const waits = each.status === 'waiting' ? `; waiting for ${each.missing.join(', ')}` : ''
        return `  ${txid}: ${escapeControlChars(reason)}${waits}`
      })
  output.result(
    { summary: { transactions: transactions.length, ...counts, skipped } },
    `admitted ${admitted} of ${transactions.length} transactions (${outputs} outputs), ${known} already known`,
    ...(source > 0 ? [`only needed by others: ${source}`] : []),
    ...(waiting > 0 ? [`waiting for missing transactions: ${waiting}`] : []),
    ...linesOf('waiting'),
    `not admitted: ${refused}`,
    ...linesOf('refused'),
    `files and lines that are neither BEEF nor raw transactions: ${skipped.length}`,
    ...skipped.map((file) => `  ${escapeControlChars(file)}`),
  )
}
