import { createHash } from 'node:crypto'
import {
  LockingScript,
  MerklePath,
  Script,
  Transaction,
  TransactionSignature,
  UnlockingScript,
} from '@bsv/sdk'

// A mint as a stranger writes it from `docs/spec/protocol.md`, Nodes and Mints. It shares no code with the product, whose
// builder could be wrong in the same way as its checks.

export const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
export const hash256 = (bytes: Uint8Array): Buffer => sha256(sha256(bytes))

/** The five fields that the locking script of a node ends with, and the covenant before them. */
export interface HandNode {
  code: Buffer
  genesis: Buffer
  claimed: Buffer
  domain: string
  pow: Buffer
}

/** Data behind its length, as nodes hold their state. */
export function push(data: Uint8Array): Buffer {
  if (data.length < 76) return Buffer.concat([Buffer.of(data.length), data])
  if (data.length < 256) return Buffer.concat([Buffer.of(76, data.length), data])
  const length = Buffer.alloc(5)
  length[0] = data.length < 65_536 ? 77 : 78
  length.writeUInt32LE(data.length, 1)
  return Buffer.concat([length.subarray(0, data.length < 65_536 ? 3 : 5), data])
}

/** The shortest push of data, which nodes of the network want in unlocking scripts. */
export function minimalPush(data: Uint8Array): Buffer {
  const [only] = data
  return data.length === 1 && only !== undefined && only >= 1 && only <= 16
    ? Buffer.of(0x50 + only)
    : push(data)
}

/** Reads a node from the end of its script (Nodes). */
export function readNode(script: Buffer): HandNode {
  const length = script.readUInt32LE(script.length - 5)
  const start = script.length - 5 - length
  const fields: Buffer[] = []
  for (let at = start; at < script.length - 5; ) {
    const size = script[at] ?? 0
    fields.push(script.subarray(at + 1, at + 1 + size))
    at += 1 + size
  }
  const [, genesis, claimed, domain, pow] = fields
  if (!genesis || !claimed || !domain || !pow) throw new Error('not a node')
  return { code: script.subarray(0, start - 1), genesis, claimed, domain: domain.toString(), pow }
}

/** `claimed` with the bit of a character: a little-endian number without spare bytes. */
export function withBit(claimed: Buffer, character: string): Buffer {
  const number = BigInt(`0x${Buffer.from(claimed).reverse().toString('hex') || '0'}`)
  const set = number | (1n << BigInt(character.charCodeAt(0)))
  const hex = set.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').reverse()
  return (bytes.at(-1) ?? 0) < 0x80 ? bytes : Buffer.concat([bytes, Buffer.of(0)])
}

/** Whether a hash, read byte-reversed, starts with so many zero bits. */
export function isGood(hash: Buffer, bits: number): boolean {
  return BigInt(`0x${Buffer.from(hash).reverse().toString('hex')}`) >> BigInt(256 - bits) === 0n
}

/** Counts until a nonce with a certain start solves. */
export function countTo(
  bits: number,
  { prefix = Buffer.alloc(0), hash }: { prefix?: Buffer; hash: (nonce: Buffer) => Buffer },
): { nonce: Buffer; pow: Buffer } {
  const nonce = Buffer.concat([prefix, Buffer.alloc(4)])
  for (let count = 0; ; count++) {
    nonce.writeUInt32LE(count, prefix.length)
    const pow = hash(nonce)
    if (isGood(pow, bits)) return { nonce, pow }
  }
}

const scriptOf = (bytes: Uint8Array): Script => Script.fromBinary([...bytes])

/** A coin that anybody can spend, in a block of its own as a local network takes it. */
function coin(satoshis: number): Transaction {
  const spends = createHash('sha256').update(`${process.hrtime.bigint()}`).digest('hex')
  const transaction = new Transaction()
  transaction.addInput({ sourceTXID: spends, sourceOutputIndex: 0, unlockingScript: new UnlockingScript([]) })
  transaction.addOutput({ satoshis, lockingScript: new LockingScript(scriptOf(Buffer.of(0x51)).chunks) })
  return proven(transaction)
}

/** With the path of a block that holds nothing else. */
function proven(transaction: Transaction): Transaction {
  transaction.merklePath = new MerklePath(800_000, [[{ offset: 0, hash: transaction.id('hex'), txid: true }]])
  return transaction
}

/**
 * The BEEF of an unproven transaction that spends a node into these three outputs, and a coin, with an output of change
 * behind; so scripts are run.
 *
 * @param mint.unlocking Writes the unlocking script of the node, of the outputs after the third and the preimage.
 */
export function beefOfMint(mint: {
  source: Transaction
  vout: number
  outputs: readonly Uint8Array[]
  unlocking: (parts: { trailing: Buffer; preimage: Buffer }) => Uint8Array
}): { transaction: Transaction; beef: Uint8Array } {
  const { source, vout } = mint
  const node = source.outputs[vout]
  if (node === undefined) throw new Error(`no output ${vout}`)
  const transaction = new Transaction(1, [], [], 0)
  const sequence = 0xffffffff
  const nothing = new UnlockingScript([])
  transaction.addInput({
    sourceTransaction: source,
    sourceOutputIndex: vout,
    unlockingScript: nothing,
    sequence,
  })
  const funding = {
    sourceTransaction: coin(10_000),
    sourceOutputIndex: 0,
    unlockingScript: nothing,
    sequence,
  }
  transaction.addInput(funding)
  const change = { satoshis: 5_000, lockingScript: new LockingScript(scriptOf(Buffer.of(0x51)).chunks) }
  for (const script of mint.outputs)
    transaction.addOutput({ satoshis: 1, lockingScript: new LockingScript(scriptOf(script).chunks) })
  transaction.addOutput(change)
  const preimage = TransactionSignature.format({
    sourceTXID: source.id('hex'),
    sourceOutputIndex: vout,
    sourceSatoshis: node.satoshis ?? 0,
    transactionVersion: 1,
    otherInputs: transaction.inputs.slice(1),
    outputs: transaction.outputs,
    inputIndex: 0,
    subscript: node.lockingScript,
    inputSequence: sequence,
    lockTime: 0,
    scope: 0xc1,
  })
  // One output: its value, one byte of length, and one opcode.
  const trailing = Buffer.concat([Buffer.alloc(8), Buffer.of(1, 0x51)])
  trailing.writeBigUInt64LE(5_000n)
  const unlocking = mint.unlocking({ trailing, preimage: Buffer.from(preimage) })
  const [input] = transaction.inputs
  if (input !== undefined) input.unlockingScript = new UnlockingScript(scriptOf(unlocking).chunks)
  return { transaction, beef: Uint8Array.from(transaction.toBEEF()) }
}
