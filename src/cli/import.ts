import type { Writable } from 'node:stream'
import type { Admission } from '../crawl/crawl.js'
import { harmless } from '../server/harmless-text.js'
import type { Node } from '../server/node.js'
import { admitBeef, admitTrusted } from './admit.js'
import { cutOut, type FoundTransaction, findTransactions } from './import-files.js'

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
}): Promise<Admission> {
  const { node, transaction, trust } = options
  const { view, beef } = transaction
  if (beef === undefined && !trust) {
    return { kind: 'refused', why: 'NO_PROOF: a raw transaction; --trust takes it on your word' }
  }
  const { txid } = view
  return beef === undefined
    ? await admitTrusted(node, { txid, raw: view.raw })
    : await admitBeef(node, { txid, beef: () => cutOut(view, beef) })
}
