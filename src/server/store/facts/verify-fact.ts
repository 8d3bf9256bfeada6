import { FACT, type Fact, isIntactTransaction, readProofFact } from '../../../../backend/src/facts/log.js'
import { readRegisterFact } from '../../../../backend/src/facts/registers.js'
import { nativeHash256, sha256 } from '../../../../backend/src/graph/native-hash.js'
import { readProof } from '../../../../backend/src/graph/read-beef.js'
import { blockText } from '../../../../backend/src/graph/records.js'
import { readHeadersFact } from '../../../../backend/src/index/headers.js'
import {
  HEADER_BYTES,
  headerAt,
  headerCount,
  previousOf,
} from '../../../../backend/src/protocol/block-header.js'
import { equalBytes, reversed } from '../../../../backend/src/protocol/bytes.js'

/** The names of facts in the reports of commands. */
export const FACT_NAMES: Record<Fact['kind'], string> = {
  [FACT.transaction]: 'transaction',
  [FACT.proof]: 'proof',
  [FACT.header]: 'headers',
  [FACT.body]: 'content',
  [FACT.register]: 'register',
}

/**
 * Whether a fact matches its key: the hash of a transaction or body, the root of a proof, the last of linked headers. A
 * register only has to be readable.
 */
export function isSound(fact: Fact): boolean {
  try {
    return CHECKS[fact.kind](fact)
  } catch {
    // Readers throw all kinds of errors on damaged bytes.
    return false
  }
}

const CHECKS: Record<Fact['kind'], (fact: Fact) => boolean> = {
  [FACT.transaction]: isIntactTransaction,
  [FACT.proof](fact) {
    const { txid, proof } = readProofFact(fact)
    return blockText(readProof({ txid, bump: proof.merklePath })) === blockText(proof)
  },
  [FACT.header](fact) {
    const { headers } = readHeadersFact(fact)
    const last = headerAt(headers, headerCount(headers) - 1)
    return isRun(headers) && equalBytes(reversed(nativeHash256(last)), fact.key)
  },
  [FACT.body]: ({ key, body }) => equalBytes(sha256(body), key),
  [FACT.register](fact) {
    readRegisterFact(fact)
    return true
  },
}

function isRun(headers: Uint8Array): boolean {
  const count = headerCount(headers)
  if (count === 0 || headers.length !== count * HEADER_BYTES) return false
  for (let index = 1; index < count; index++)
    if (!equalBytes(nativeHash256(headerAt(headers, index - 1)), previousOf(headers, index))) return false
  return true
}
