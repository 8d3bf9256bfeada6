import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { Bundle, type ReadOptions, readOutpointBeef } from './bundle.js'
import { type GenuineMint, lineOf, NAME_VOUT, nameOutpoint, readMints } from './mint-line.js'
import { ProofError } from './proof-error.js'
import { type Trust, Voucher } from './vouch.js'

/** One mint on the way from the genesis to a name. */
export interface VerifiedMint {
  txid: string
  /** The name that it claimed. */
  name: string
  /** Of its block; undefined where it is in none, or where no headers were asked. */
  height?: number
}

/** A name that was mined in the tree of the genesis; that nothing is wrong with it was checked, not told. */
export interface VerifiedName {
  name: string
  /** The output in which it was minted: once and for ever the same for a name whose mint is in the chain. */
  origin: Outpoint
  /** From the genesis to the mint of the name, in order. */
  line: VerifiedMint[]
  /**
   * Whether every mint of the line is in a block that the chain tracker knows. False: at least one is not, and another
   * mint may still take its place; or no headers were asked (`'scripts only'`).
   */
  proven: boolean
  /** Of the block that holds the mint of the name. */
  height?: number
}

/** What it takes to check a name offline. */
export interface NameTrust extends Trust, ReadOptions {
  /** The tree: its genesis outpoint, and how it was deployed. */
  deployment: Deployment
}

/**
 * Checks that a name is genuine (BRC-174 section 4, step 3.2; service.md 3.3), with nothing but the genesis outpoint and
 * block headers. The proof is an Outpoint BEEF (BRC-158) of the name's origin, with every mint from the genesis to it.
 * Transactions in it that the name does not rest on are read and not believed.
 *
 * @param check.proof As `GET /svc/names/proof/{name}` answers it.
 * @throws ProofError with what does not hold; HeadersError where the chain tracker does not answer.
 */
export async function verifyNameProof(
  check: NameTrust & { proof: Uint8Array; name: string },
): Promise<VerifiedName> {
  const { proof, name, deployment } = check
  const { subject, bundle } = readOutpointBeef(proof, check)
  const mint = readMints(bundle, deployment).get(subject.txid)
  if (mint === undefined) {
    throw new ProofError(
      'NOT_IN_TREE',
      `${formatOutpoint(subject)} does not descend from the genesis by mints: it is no name of this tree`,
    )
  }
  if (subject.vout !== NAME_VOUT)
    throw new ProofError('OTHER_NAME', `output ${subject.vout} of a mint is no name: output ${NAME_VOUT} is`)
  if (mint.name !== name) throw new ProofError('OTHER_NAME', `it is a proof of ${mint.name}, not of ${name}`)
  return await vouchedName(mint, new Voucher(bundle, check, deployment.genesis.txid))
}

/**
 * Checks the mint of a name alone, from any BEEF that holds the mints from the genesis to it. Where the name went since is
 * not looked at.
 *
 * @returns The name, and the script of its origin, which starts with the lock that the mint gave it.
 * @throws ProofError with what does not hold; HeadersError where the chain tracker does not answer.
 */
export async function verifyNameMint(
  check: NameTrust & { beef: Uint8Array; name: string },
): Promise<VerifiedName & { lockingScript: Uint8Array }> {
  const { beef, deployment } = check
  const bundle = new Bundle(beef, check)
  const verified = await vouchedName(
    mintOf(bundle, check),
    new Voucher(bundle, check, deployment.genesis.txid),
  )
  const output = bundle.output(verified.origin)
  if (output === undefined) throw new ProofError('BAD_BEEF', `${formatOutpoint(verified.origin)} is missing`)
  return { ...verified, lockingScript: output.lockingScript }
}

/** The mint of a name in a bundle that holds it among others. @throws ProofError `NOT_IN_TREE`. */
export function mintOf(
  bundle: Bundle,
  { name, deployment }: { name: string; deployment: Deployment },
): GenuineMint {
  const mints = [...readMints(bundle, deployment).values()]
  const found = mints.find((mint) => mint.name === name)
  if (found !== undefined) return found
  throw new ProofError('NOT_IN_TREE', `no mint that descends from the genesis claims ${name}`)
}

/** Vouches for each mint of the line, the first one first. */
export async function vouchedName(last: GenuineMint, voucher: Voucher): Promise<VerifiedName> {
  const line: VerifiedMint[] = []
  for (const { txid, name } of lineOf(last)) {
    const height = await voucher.vouch(txid)
    line.push({ txid, name, ...(height !== undefined && { height }) })
  }
  const height = line.at(-1)?.height
  return {
    name: last.name,
    origin: nameOutpoint(last),
    line,
    proven: line.every((mint) => mint.height !== undefined),
    ...(height !== undefined && { height }),
  }
}
