import { LockingScript, Script, Spend, UnlockingScript } from '@bsv/sdk'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import type { MineNode } from '../../../backend/src/protocol/mine-node.js'
import {
  COVENANT_LIMITS,
  type CovenantVersion,
  checkMint,
  type Deployment,
  MintError,
} from '../../../backend/src/protocol/mint.js'
import type { TransactionView } from '../../../backend/src/protocol/transaction.js'
import { type CovenantPart, covenantCode, covenantParts } from '../../../src/mining/covenant.js'
import { FakeChain, type FakeNode, type MintOverrides } from '../protocol/fake-chain.js'

/** A chain whose root is locked to the covenant of our own. One bit of work, unless a test wants more. */
export function covenantChain(
  options: {
    covenantVersion?: CovenantVersion
    difficulty?: number
    nameMarker?: string
    nameContentType?: string
    tld?: string
    /** As `FakeChain` takes it. */
    change?: number
    /** Parts of the root's state, instead of what an honest deployment has. */
    root?: Partial<MineNode>
  } = {},
): FakeChain {
  const { difficulty = 1, nameMarker = 'a marker', nameContentType = 'application/name-claim', tld } = options
  const { covenantVersion = 2 } = options
  const terms = { covenantVersion, difficulty, nameContentType, marker: utf8(nameMarker), tld }
  const root = { code: covenantCode(terms), ...options.root }
  return new FakeChain({ ...terms, nameMarker, root, limits: COVENANT_LIMITS, change: options.change })
}

/** A transaction that spends a node of a covenant's tree, or tries to. */
export interface CovenantSpend {
  transaction: TransactionView
  /** The index of the input that spends it. */
  input: number
  spent: FakeNode
  deployment: Deployment
}

/** Mints a name on a covenant's chain, as `FakeChain.mint` does, with what it takes to judge the spend. */
export function covenantMint(chain: FakeChain, name: string, overrides: MintOverrides = {}): CovenantSpend {
  const spent = overrides.from ?? chain.node(name.slice(0, -1))
  const { transaction } = chain.mint(name, overrides)
  return { transaction, input: overrides.nodeInputPosition ?? 0, spent, deployment: chain.deployment }
}

/** What a node of the network holds a block to: each flag for an output and a block after Genesis. */
const BLOCK_FLAGS =
  'P2SH,DERSIG,STRICTENC,SIGHASH_FORKID,LOW_S,NULLFAIL,GENESIS,UTXO_AFTER_GENESIS,SIGPUSHONLY'
/** And all that it may hold a transaction to before it passes it on. */
const RELAY_FLAGS = `${BLOCK_FLAGS},MINIMALDATA,MINIMALIF,NULLDUMMY,CLEANSTACK,DISCOURAGE_UPGRADABLE_NOPS,CHECKSEQUENCEVERIFY`

/**
 * What the SDK's interpreter can enforce. `plain`: what it does by itself, for a transaction of version 1
 * minimal data, low S, clean stack and push-only, for one of version 2 and more none of them. The others by flags.
 */
export const RULES = { plain: undefined, block: BLOCK_FLAGS, relay: RELAY_FLAGS } as const

/** Runs the spend in the SDK's interpreter: undefined where it is accepted, else why not. */
export function refusalByScript(
  spend: CovenantSpend,
  rules: keyof typeof RULES = 'plain',
): string | undefined {
  try {
    return interpreter(spend, rules).validate() ? undefined : 'not valid'
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return error.message
  }
}

/** Where the SDK's interpreter refuses the spend: in the unlocking script, or in which part of the covenant. */
export function refusingPart(
  spend: CovenantSpend,
  rules: keyof typeof RULES = 'plain',
): CovenantPart | 'unlocking' | 'none' {
  const run = interpreter(spend, rules)
  try {
    run.validate()
    return 'none'
  } catch {
    if (run.context === 'UnlockingScript') return 'unlocking'
  }
  // Past all parts it has run to its end, where the last of them leaves whether the outputs are the right ones.
  return partEnds(spend.deployment).find(({ end }) => run.programCounter < end)?.part ?? 'outputs'
}

const knownEnds = new WeakMap<Deployment, { part: CovenantPart; end: number }[]>()

/** The parts of a deployment's covenant, each with the count of opcodes up to its end. */
function partEnds(deployment: Deployment): { part: CovenantPart; end: number }[] {
  const known = knownEnds.get(deployment)
  if (known !== undefined) return known
  let end = 0
  const ends = Object.entries(covenantParts(deployment)).map(([part, bytes]) => {
    end += Script.fromBinary(Array.from(bytes)).chunks.length
    return { part: part as CovenantPart, end }
  })
  knownEnds.set(deployment, ends)
  return ends
}

/** The SDK's interpreter, about to run the spend. */
export function interpreter(spend: CovenantSpend, rules: keyof typeof RULES = 'plain'): Spend {
  const { transaction, input, spent } = spend
  const spender = transaction.inputs[input]
  if (spender === undefined) throw new RangeError(`the transaction has no input ${input}`)
  const others = transaction.inputs.filter((_, index) => index !== input)
  return new Spend({
    ...{ sourceTXID: spender.txid, sourceOutputIndex: spender.vout, sourceSatoshis: spent.satoshis },
    lockingScript: LockingScript.fromBinary(Array.from(spent.lockingScript)),
    transactionVersion: transaction.version,
    otherInputs: others.map(({ txid, vout, sequence }) => ({
      sourceTXID: txid,
      sourceOutputIndex: vout,
      sequence,
    })),
    outputs: transaction.outputs.map(({ satoshis, lockingScript }) => ({
      satoshis,
      lockingScript: LockingScript.fromBinary(Array.from(lockingScript)),
    })),
    inputIndex: input,
    unlockingScript: UnlockingScript.fromBinary(Array.from(spender.unlockingScript)),
    inputSequence: spender.sequence,
    lockTime: transaction.lockTime,
    ...(RULES[rules] !== undefined && { verifyFlags: RULES[rules] }),
  })
}

/** Asks `checkMint` about the spend: undefined where it takes it for a mint, else the code of its error. */
export function refusalByCheck(spend: CovenantSpend): string | undefined {
  try {
    checkMint(spend)
    return undefined
  } catch (error) {
    if (!(error instanceof MintError)) throw error
    return error.code
  }
}
