import { Beef, OP, type Script, Transaction, type TransactionInput, Utils } from '@bsv/sdk'

/**
 * A verifier of provenance as a wallet would write it: from BRC-158 (the bytes), BRC-62 (the proofs) and BRC-159 (the
 * ordinal arithmetic) over the SDK, with nothing of this project in it.
 */
export interface ProvenanceTrust {
  /** Whether the block at a height has that merkle root. */
  isRoot: (root: string, height: number) => boolean
  /** Outpoints that start a lineage whatever came before: origins of names that are known to be genuine. */
  starts?: string[]
  /** Whether more may be shown than it takes: what a store holds of a proven transaction's parents is held unproven. */
  more?: boolean
}

/** What is shown of an ordinal; outpoints are `<txid>_<vout>`. */
export interface VerifiedOrdinal {
  tip: string
  origin: string
  /** From the start of the lineage to the tip. */
  path: string[]
}

/** @throws Error, naming what does not hold. */
export function verifyProvenance(bytes: Uint8Array, trust: ProvenanceTrust): VerifiedOrdinal {
  const { tip, transactions, proofs } = read(bytes)
  const bundle = new Bundle(transactions)
  if (transactions.at(-1)?.id('hex') !== tip.split('_')[0]) fail('the subject does not stand last')
  for (const { txid, height, root } of proofs)
    if (!trust.isRoot(root, height)) fail(`${txid} is in no block at ${height}`)
  const proven = new Set(proofs.map(({ txid }) => txid))
  const { path, placing } = walkBack(bundle, tip, trust.starts ?? [])
  // A step is proven by its block, or by all its ancestors down to their blocks (BRC-62).
  const open = path.map(txidOf)
  const reached = new Set<string>()
  for (let txid = open.pop(); txid !== undefined; txid = open.pop()) {
    if (reached.has(txid)) continue
    reached.add(txid)
    if (!proven.has(txid)) open.push(...bundle.get(txid).inputs.map(sourceOf))
    if (!proven.has(txid) && bundle.get(txid).inputs.length === 0) fail(`${txid} spends nothing`)
  }
  // Whatever places an ordinal in a transaction is proven by the txid in its input.
  for (const txid of bundle.txids)
    if (!trust.more && !reached.has(txid) && !placing.has(txid)) fail(`${txid} is of no use here`)
  const origin = path.find((outpoint) => hasEnvelope(bundle.output(outpoint).lockingScript))
  if (origin === undefined) throw new Error('nothing is inscribed on the lineage')
  return { tip, origin, path }
}

function read(bytes: Uint8Array) {
  const reader = new Utils.ReaderUint8Array(Uint8Array.from(bytes))
  if (Utils.toHex(Array.from(reader.read(4))) !== '16a7beef') fail('no Outpoint BEEF')
  const txid = Utils.toHex(Array.from(reader.read(32)).reverse())
  const tip = `${txid}_${reader.readUInt32LE()}`
  const beef = Beef.fromReader(reader)
  if (!reader.eof()) fail('bytes follow the BEEF')
  const transactions = beef.txs.map(({ tx }) => tx ?? fail('a transaction is not there'))
  const proofs = beef.txs.flatMap(({ tx, bumpIndex }) => {
    if (bumpIndex === undefined) return []
    const bump = beef.bumps[bumpIndex] ?? fail('a merkle path is not there')
    const txid = tx?.id('hex') ?? ''
    return [{ txid, height: bump.blockHeight, root: bump.computeRoot(txid) }]
  })
  return { tip, transactions, proofs }
}

/** Transactions by their hashes, each once, parents before children. */
class Bundle {
  private readonly byTxid = new Map<string, Transaction>()

  constructor(transactions: Transaction[]) {
    const all = new Set(transactions.map((transaction) => transaction.id('hex')))
    if (all.size < transactions.length) fail('a transaction stands twice')
    for (const transaction of transactions) {
      const late = transaction.inputs.map(sourceOf).find((txid) => all.has(txid) && !this.byTxid.has(txid))
      if (late !== undefined) fail(`${late} stands behind what spends it`)
      this.byTxid.set(transaction.id('hex'), transaction)
    }
  }

  get txids(): string[] {
    return [...this.byTxid.keys()]
  }

  get(txid: string): Transaction {
    return this.byTxid.get(txid) ?? fail(`${txid} is missing`)
  }

  output(outpoint: string): { satoshis: number; lockingScript: Script } {
    const { satoshis, lockingScript } =
      this.get(txidOf(outpoint)).outputs[Number(outpoint.split('_')[1])] ?? fail(`there is no ${outpoint}`)
    return { satoshis: satoshis ?? fail(`${outpoint} has no value`), lockingScript }
  }
}

/** From the tip to where the coin before it is none of 1 satoshi (BRC-159, Finding origin from an outpoint). */
function walkBack(bundle: Bundle, tip: string, starts: string[]): { path: string[]; placing: Set<string> } {
  const path = [tip]
  const placing = new Set<string>()
  if (bundle.output(tip).satoshis !== 1) return { path, placing }
  for (let at = tip; ; ) {
    const { inputs, outputs } = bundle.get(txidOf(at))
    // Where all that came before is shown, it is checked even so.
    if (starts.includes(at) && !inputs.every((input) => bundle.txids.includes(sourceOf(input)))) break
    const before = outputs
      .slice(0, Number(at.split('_')[1]))
      .reduce((sum, { satoshis = 0 }) => sum + satoshis, 0)
    let sum = 0
    const covering = inputs.find((input) => {
      placing.add(sourceOf(input))
      sum += bundle.output(outpointOf(input)).satoshis
      return sum > before
    })
    if (covering === undefined) throw new Error(`the inputs do not reach ${at}`)
    const previous = outpointOf(covering)
    if (starts.includes(at) || bundle.output(previous).satoshis !== 1 || sum !== before + 1) break
    path.unshift(previous)
    at = previous
  }
  return { path, placing }
}

/** BRC-160: an envelope that is opened, says `ord`, and is closed. */
function hasEnvelope({ chunks }: Script): boolean {
  const opens = chunks.findIndex(
    ({ op }, i) =>
      op === OP.OP_FALSE &&
      chunks[i + 1]?.op === OP.OP_IF &&
      Utils.toUTF8(chunks[i + 2]?.data ?? []) === 'ord',
  )
  return opens !== -1 && chunks.slice(opens).some(({ op }) => op === OP.OP_ENDIF)
}

function txidOf(outpoint: string): string {
  return outpoint.split('_')[0] ?? ''
}

function sourceOf({ sourceTXID }: TransactionInput): string {
  return sourceTXID ?? fail('an input spends nothing')
}

function outpointOf(input: TransactionInput): string {
  return `${sourceOf(input)}_${input.sourceOutputIndex}`
}

function fail(reason: string): never {
  throw new Error(reason)
}

/** The bytes with each one transaction left out, and with each one output worth a satoshi more. */
export function tampered(bytes: Uint8Array): { what: string; bytes: Uint8Array }[] {
  const envelope = bytes.subarray(0, 40)
  const beef = Beef.fromBinary(Array.from(bytes.subarray(40)))
  const rewritten = (at: number, changed?: Transaction): Uint8Array => {
    const kept = beef.txs
      .map(({ tx, bumpIndex }, i) => ({ tx: i === at ? changed : tx, bumpIndex }))
      .filter(({ tx }) => tx !== undefined)
    const writer = new Utils.Writer().write(Array.from(envelope)).writeUInt32LE(beef.version)
    writer.writeVarIntNum(beef.bumps.length)
    for (const bump of beef.bumps) writer.write(bump.toBinary())
    writer.writeVarIntNum(kept.length)
    for (const { tx, bumpIndex } of kept) {
      writer.write(tx?.toBinary() ?? []).writeUInt8(bumpIndex === undefined ? 0 : 1)
      if (bumpIndex !== undefined) writer.writeVarIntNum(bumpIndex)
    }
    return Uint8Array.from(writer.toArray())
  }
  return beef.txs.flatMap(({ tx }, at) => {
    if (tx === undefined) return []
    const richer = tx.outputs.map((_, vout) => {
      const outputs = tx.outputs.map((each, i) => ({
        ...each,
        satoshis: (each.satoshis ?? 0) + (i === vout ? 1 : 0),
      }))
      const changed = new Transaction(tx.version, tx.inputs, outputs, tx.lockTime)
      return { what: `output ${vout} of transaction ${at} changed`, bytes: rewritten(at, changed) }
    })
    return [{ what: `transaction ${at} left out`, bytes: rewritten(at) }, ...richer]
  })
}
