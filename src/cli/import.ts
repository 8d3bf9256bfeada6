import type { Writable } from 'node:stream'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { harmless } from '../server/harmless-text.js'
import type { Node } from '../server/node.js'
import { admittedCount, type Refusal } from '../server/overlay.js'
import { engineBeef } from '../server/overlay-engine.js'
import { SubmissionError } from '../server/overlay-errors.js'
import { cutOut, type FoundTransaction, findTransactions } from './import-files.js'

const ALL_TOPICS = Object.values(TOPICS)

type Outcome = { kind: 'admitted'; outputs: number } | { kind: 'known' } | { kind: 'refused'; why: string }

export interface ImportOptions {
  node: Node
  paths: string[]
  /** Take raw transactions that carry no proof. */
  trust: boolean
  out: Writable
  /** Where the progress line goes. */
  progress: Writable & { isTTY?: boolean }
}

/**
 * Admits what the files hold, parents first, and says what was admitted, what not, and why.
 *
 * @throws ImportError where a path cannot be read; then nothing was admitted.
 */
export async function runImport({ node, paths, trust, out, progress }: ImportOptions): Promise<void> {
  const { transactions, skipped } = await findTransactions(paths)
  const total = { admitted: 0, outputs: 0, known: 0 }
  const refused: string[] = []
  for (const [index, transaction] of transactions.entries()) {
    const outcome = await importOne({ node, transaction, trust })
    if (outcome.kind === 'admitted') {
      total.admitted++
      total.outputs += outcome.outputs
    } else if (outcome.kind === 'known') {
      total.known++
    } else {
      refused.push(`${transaction.view.txid}: ${outcome.why}`)
    }
    if (progress.isTTY) progress.write(`\r${index + 1} of ${transactions.length} transactions`)
  }
  if (progress.isTTY) progress.write('\n')
  const lines = [
    `admitted ${total.admitted} of ${transactions.length} transactions (${total.outputs} outputs), ${total.known} known before`,
    `not admitted: ${refused.length}`,
    ...refused.map((line) => `  ${harmless(line)}`),
    `files and lines that are neither BEEF nor raw transactions: ${skipped.length}`,
    ...skipped.map((file) => `  ${harmless(file)}`),
  ]
  out.write(`${lines.join('\n')}\n`)
}

async function importOne(options: {
  node: Node
  transaction: FoundTransaction
  trust: boolean
}): Promise<Outcome> {
  const { node, transaction, trust } = options
  const { view, beef } = transaction
  if (beef === undefined && !trust) {
    return { kind: 'refused', why: 'NO_PROOF: a raw transaction; --trust takes it on your word' }
  }
  const { engine } = node.overlay
  const refusals: Refusal[] = []
  const stopListening = node.overlay.onRefusal((refusal) => refusals.push(refusal))
  try {
    const steak =
      beef === undefined
        ? await engine.submitTrusted(view.raw, ALL_TOPICS)
        : await engine.submit(
            { beef: engineBeef(await cutOut(view, beef)), topics: ALL_TOPICS },
            undefined,
            'historical-tx',
          )
    const winner = await node.graph.winnerOver(view.txid)
    if (winner !== undefined) return { kind: 'refused', why: `CONFLICT: it is kept, but ${winner} counts` }
    const outputs = admittedCount(steak)
    if (outputs > 0) return { kind: 'admitted', outputs }
    // A topic that says nothing has it already; one may say several things.
    if (new Set(refusals.map(({ topic }) => topic)).size < ALL_TOPICS.length) return { kind: 'known' }
    return { kind: 'refused', why: refusals.map(({ code, message }) => `${code}: ${message}`).join('; ') }
  } catch (error) {
    // The transaction's fault: the others go on. Anything else ends the import.
    if (!(error instanceof SubmissionError || error instanceof BeefError)) throw error
    return { kind: 'refused', why: `${error.code}: ${error.message}` }
  } finally {
    stopListening()
  }
}
