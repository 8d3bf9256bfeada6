import { addressLock, type Network } from '../../../backend/src/protocol/address.js'
import { CodedError } from '../../../backend/src/protocol/coded-error.js'
import { isName } from '../../../backend/src/protocol/mine-node.js'
import { type DeploymentTerms, longestName } from '../../../backend/src/protocol/mint.js'

/** Who pays: fake money on a local network, a wallet, or nobody, so that the mint is shown for somebody else to pay. */
export const PAYERS = ['fake', 'wallet', 'nobody'] as const
export type Payer = (typeof PAYERS)[number]

export interface MiningOrder {
  name: string
  payer: Payer
  /** The lock of the names; undefined for the lock of the payer. */
  ownerLock: Uint8Array | undefined
  workers: number
}

export type OrderFields = Readonly<Record<'name' | 'owner' | 'payer' | 'workers', string>>

/** An invalid field; the message says what would be valid. */
export class OrderError extends CodedError {
  override readonly name = 'OrderError'
  readonly code = 'BAD_FIELD'

  constructor(
    readonly field: keyof OrderFields,
    message: string,
  ) {
    super(message)
  }
}

const MOST_WORKERS = 1024

/**
 * Reads the form. If nobody pays yet, an owner is required, because the search is for one owner.
 *
 * @param server.network The network of owners' addresses.
 * @param server.deployment Limits the length of names.
 * @throws OrderError for the first invalid field.
 */
export function readOrder(
  fields: OrderFields,
  { network, deployment }: { network: Network; deployment: DeploymentTerms },
): MiningOrder {
  const name = fields.name.trim()
  if (!isName(name) || name.length > longestName(deployment))
    throw new OrderError('name', `A name is ${nameRule(deployment)}`)
  const payer = PAYERS.find((each) => each === fields.payer)
  if (payer === undefined) throw new OrderError('payer', 'Choose who pays.')
  const workers = Number(fields.workers)
  if (!Number.isInteger(workers) || workers < 1 || workers > MOST_WORKERS)
    throw new OrderError('workers', `Use 1 to ${MOST_WORKERS} workers.`)
  const ownerLock = readOwner(fields.owner.trim(), { payer, network })
  return { name, payer, ownerLock, workers }
}

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
  const lock = addressLock(address, network)
  if (lock === 'not an address')
    throw new OrderError('owner', 'This is not a P2PKH address: check that it is complete.')
  if (lock === 'other network')
    throw new OrderError('owner', `This server is on the ${network} network: use an address of that network.`)
  return lock
}
