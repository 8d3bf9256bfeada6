import { Utils } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { encodeBeef } from '../../backend/src/graph/write-beef.js'
import { reversed, toHex } from '../../backend/src/protocol/bytes.js'
import { type DeploymentTerms, MINT_SATOSHIS } from '../../backend/src/protocol/mint.js'
import { encodeOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { rootLock } from '../mining/covenant.js'
import { lonePath, madeUpTxid } from '../mining/made-up-mint.js'
import type { DeployedTree } from '../server/store/pinned-genesis.js'

// Transactions that no chain holds, as large as what is published: see made-up-mint.ts. Nothing here is signed.

interface Output {
  satoshis: number
  lockingScript: Uint8Array
}

/** A transaction, and the BEEF in which a local network takes it. */
export interface MadeUpTransaction {
  txid: string
  height: number
  beef: Uint8Array
}

/**
 * A transaction that makes these outputs from a coin made up for them. What made the coin goes with it: by its value,
 * which is not 1 satoshi, an indexer tells that ordinals start here (BRC-159).
 *
 * @param nowhere The txid, which nothing has, that the coin is made from: another one each time, unless set. The same
 * outputs from the same one are the same transaction.
 */
export function fundedTransaction(outputs: readonly Output[], nowhere = madeUpTxid()): MadeUpTransaction {
  const coin = coinFor(outputs, nowhere)
  const made = record({ spends: [{ txid: coin.txid, vout: 0 }], outputs, height: 2 })
  return { txid: made.txid, height: 2, beef: encodeBeef([coin, made]) }
}

/** The transaction that spends output 0 of another, which the host has, into one output. */
export function spendingTransaction(spent: MadeUpTransaction, output: Output): MadeUpTransaction {
  const height = spent.height + 1
  const made = record({ spends: [{ txid: spent.txid, vout: 0 }], outputs: [output], height })
  return { txid: made.txid, height, beef: encodeBeef([made]) }
}

/**
 * The transaction that spends an ordinal, which the host has, and a coin made up for the outputs. The ordinal comes
 * first among the inputs, so that it goes on in output 0 (BRC-159).
 *
 * @param spent.height Of the block that holds the ordinal's transaction.
 * @param spent.nowhere As for {@link fundedTransaction}.
 */
export function reinscribingTransaction({
  ordinal,
  height,
  outputs,
  nowhere = madeUpTxid(),
}: {
  ordinal: Outpoint
  height: number
  outputs: readonly Output[]
  nowhere?: string
}): MadeUpTransaction {
  const coin = coinFor(outputs, nowhere)
  const made = record({ spends: [ordinal, { txid: coin.txid, vout: 0 }], outputs, height: height + 1 })
  return { txid: made.txid, height: height + 1, beef: encodeBeef([coin, made]) }
}

/**
 * A tree of names of our covenant, whose root as deployed holds a made-up coin.
 *
 * @throws CovenantError where no covenant has these terms.
 */
export function deployTree(terms: DeploymentTerms): DeployedTree {
  const { txid, beef } = fundedTransaction([{ satoshis: MINT_SATOSHIS, lockingScript: rootLock(terms) }])
  return { genesis: { txid, vout: 0 }, beef }
}

const NO_LOCK = new Uint8Array()
const FINAL = 0xffffffff

/** A coin of more satoshis than the outputs have, and so never of 1. */
function coinFor(outputs: readonly Output[], nowhere: string): TransactionRecord {
  return madeUpCoin(
    outputs.reduce((sum, { satoshis }) => sum + satoshis, 1),
    nowhere,
  )
}

function madeUpCoin(satoshis: number, nowhere: string): TransactionRecord {
  const outputs = [{ satoshis, lockingScript: NO_LOCK }]
  return record({ spends: [{ txid: nowhere, vout: 0 }], outputs, height: 1 })
}

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
  return proven(writer.writeUInt32LE(0).toUint8Array(), height)
}

/** A transaction with the path of a block that holds nothing else. */
function proven(raw: Uint8Array, height: number): TransactionRecord {
  const txid = toHex(reversed(nativeHash256(raw)))
  const path = lonePath({ txid, height })
  return {
    txid,
    raw,
    proof: { merklePath: Uint8Array.from(path.toBinary()), height, root: path.computeRoot(txid) },
  }
}
