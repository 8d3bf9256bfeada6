import { decodeAddress, encodeAddress, type Network, p2pkhLock } from '../../backend/src/protocol/address.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { isName } from '../../backend/src/protocol/mine-node.js'
import { type DeploymentTerms, longestName } from '../../backend/src/protocol/mint.js'

/** Money made up for a local network, a wallet, or nobody: then a mint is shown for somebody else to pay. */
export const PAYERS = ['made-up', 'wallet', 'nobody'] as const
export type Payer = (typeof PAYERS)[number]

/** What is to be mined. */
export interface MiningOrder {
  name: string
  payer: Payer
  /** The lock of the names. Undefined: whoever pays has one of its own. */
  ownerLock: Uint8Array | undefined
  workers: number
}

/** What stands in the fields of the form. */
export type OrderFields = Readonly<Record<'name' | 'owner' | 'payer' | 'workers', string>>

/** A field that does not do; the message says what would. */
export class OrderError extends CodedError<'BAD_FIELD'> {
  override readonly name = 'OrderError'

  constructor(
    readonly field: keyof OrderFields,
    message: string,
  ) {
    super('BAD_FIELD', message)
  }
}

const MOST_WORKERS = 1024

/**
 * Reads the form. Where nobody pays yet an owner has to be named: the search is for that owner.
 *
 * @param server.network Whose addresses owners have.
 * @param server.deployment Says how long names may be.
 * @throws OrderError for the first field that does not do.
 */
export function readOrder(
  fields: OrderFields,
  { network, deployment }: { network: Network; deployment: DeploymentTerms },
): MiningOrder {
  const name = fields.name.trim()
  if (!isName(name) || name.length > longestName(deployment))
    throw new OrderError('name', `A name is ${nameRule(deployment)}`)
  const payer = PAYERS.find((each) => each === fields.payer)
  if (payer === undefined) throw new OrderError('payer', 'Say who pays.')
  const workers = Number(fields.workers)
  if (!Number.isInteger(workers) || workers < 1 || workers > MOST_WORKERS)
    throw new OrderError('workers', `Workers are 1 to ${MOST_WORKERS}.`)
  const ownerLock = readOwner(fields.owner.trim(), { payer, network })
  return { name, payer, ownerLock, workers }
}

/** What a name in a tree is made of. */
export function nameRule(deployment: DeploymentTerms): string {
  return `1 to ${longestName(deployment)} characters of a–z, 0–9 and the hyphen.`
}

function readOwner(
  address: string,
  { payer, network }: { payer: Payer; network: Network },
): Uint8Array | undefined {
  if (address === '') {
    if (payer === 'nobody')
      throw new OrderError('owner', 'The search is for one owner: give the address first.')
    return undefined
  }
  const hash = decodeAddress(address)
  if (hash === undefined)
    throw new OrderError('owner', 'This is not a P2PKH address: look for a letter too few.')
  if (encodeAddress(hash, network) !== address)
    throw new OrderError(
      'owner',
      `This is not an address of the ${network} network, which this server follows.`,
    )
  return p2pkhLock(hash)
}
