import { Utils } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { encodeBeef } from '../../backend/src/graph/write-beef.js'
import { reversed, toHex } from '../../backend/src/protocol/bytes.js'
import { encodeBump } from '../../backend/src/protocol/merkle-path.js'
import { type DeploymentTerms, MINT_SATOSHIS } from '../../backend/src/protocol/mint.js'
import { encodeOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { CovenantError, rootLock } from '../mining/covenant.js'
import { randomTxid } from '../payments/fake.js'
import { ConfigError } from '../server/config/errors.js'
import type { DeployedTree } from '../server/store/pinned-genesis.js'

// Transactions with fake funding that are in no chain and need no signatures: see payments/fake.ts.

interface Output {
  satoshis: number
  lockingScript: Uint8Array
}

/** A transaction that is in no chain, and the BEEF that a local network accepts. */
export interface FakeTransaction {
  txid: string
  height: number
  beef: Uint8Array
}

/**
 * A transaction with these outputs, funded by a fake coin. It includes the coin's transaction: its value, which is not 1 satoshi,
 * shows an indexer that ordinals start here (BRC-159).
 *
 * @param source The txid that the coin's transaction spends, which no transaction has; random by default. The same outputs with
 * the same source are the same transaction.
 * @param ordinal An ordinal to spend as well, which the host has, and the height of its block. It is the first input, so it moves
 * to output 0 (BRC-159).
 */
export function fundedTransaction(
  outputs: readonly Output[],
  source = randomTxid(),
  ordinal?: Outpoint & { height: number },
): FakeTransaction {
  // More satoshis than the outputs, and so never 1.
  const satoshis = outputs.reduce((sum, each) => sum + each.satoshis, 1)
  const coin = record({
    spends: [{ txid: source, vout: 0 }],
    outputs: [{ satoshis, lockingScript: new Uint8Array() }],
    height: 1,
  })
  const height = (ordinal?.height ?? 1) + 1
  const spends = [...(ordinal ? [ordinal] : []), { txid: coin.txid, vout: 0 }]
  const made = record({ spends, outputs, height })
  return { txid: made.txid, height, beef: encodeBeef([coin, made]) }
}

/** A transaction that spends output 0 of another one, which the host has, into one output. */
export function spendingTransaction(spent: FakeTransaction, output: Output): FakeTransaction {
  const height = spent.height + 1
  const made = record({ spends: [{ txid: spent.txid, vout: 0 }], outputs: [output], height })
  return { txid: made.txid, height, beef: encodeBeef([made]) }
}

/**
 * A tree of names with our covenant, whose root as deployed holds a fake coin. Trees of a difficulty of more than 32 bits can be
 * followed but not deployed.
 *
 * @throws ConfigError if no covenant can have these terms.
 */
export function deployTree(terms: DeploymentTerms): DeployedTree {
  try {
    const root = { satoshis: MINT_SATOSHIS, lockingScript: rootLock(terms) }
    const { txid, beef } = fundedTransaction([root])
    return { genesis: { txid, vout: 0 }, beef }
  } catch (error) {
    if (!(error instanceof CovenantError)) throw error
    throw new ConfigError(`DIFFICULTY: cannot deploy this tree: ${error.message}`, { cause: error })
  }
}

const FINAL = 0xffffffff

function record(parts: {
  spends: readonly Outpoint[]
  outputs: readonly Output[]
  height: number
}): TransactionRecord {
  const { spends, outputs, height } = parts
  const writer = new Utils.Writer()
  writer.writeUInt32LE(1).writeVarIntNum(spends.length)
  for (const spent of spends) {
    writer.write(encodeOutpoint(spent)).writeVarIntNum(0).writeUInt32LE(FINAL)
  }
  writer.writeVarIntNum(outputs.length)
  for (const { satoshis, lockingScript } of outputs) {
    writer.writeUInt64LE(satoshis).writeVarIntNum(lockingScript.length).write(lockingScript)
  }
  const raw = writer.writeUInt32LE(0).toUint8Array()
  const hash = nativeHash256(raw)
  const txid = toHex(reversed(hash))
  // The merkle path of a block that holds only it.
  const merklePath = encodeBump({ height, levels: [new Map([[0, { hash, isTxid: true }]])] })
  return { txid, raw, proof: { merklePath, height, root: txid } }
}
