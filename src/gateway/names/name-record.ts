import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import { EMPTY_MAP, servedMap } from '../../../backend/src/graph/map-merge.js'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { type OutputRecord, TIP } from '../../../backend/src/graph/records.js'
import { storedOutput } from '../../../backend/src/graph/stored-transaction.js'
import { encodeAddress, type Network } from '../../../backend/src/protocol/address.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { BINDING_LAYOUTS, readBinding } from '../../../backend/src/protocol/identity-binding.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { address, blockHeight, count, map, mapTruncated, name, outpoint } from '../http/schemas.js'
import { NAMES_FIELDS } from '../http/tree-progress.js'

/** Marks an answer that depends on a transaction in no block, which may still be replaced. */
export const TIER_FIELDS = {
  proven: z.literal(false).optional().describe('Present if it is not known to be mined.'),
  seen: z
    .boolean()
    .optional()
    .describe('Present with `proven`: whether the network is known to have the transaction.'),
}

export type TierFields = { proven?: false; seen?: boolean }

export function tierFields({ transactions }: Pick<GraphReads, 'transactions'>, txid: string): TierFields {
  const tier = transactions.tiers([txid]).get(txid)
  return tier === 'proven' ? {} : { proven: false, seen: tier === 'seen' }
}

export function dependenciesOfTier(txid: string): Dependency[] {
  return [dependency.proof(txid), dependency.tier(txid)]
}

const hex = z.string().meta({ pattern: '^([0-9a-f]{2})+$' })

const bindingShape = z
  .strictObject({
    identityKey: hex.describe('The public key that the name claims to resolve to.'),
    layout: z.enum(BINDING_LAYOUTS),
    profile: z
      .strictObject({
        domain: z.string().optional(),
        name: z.string().optional(),
        avatar: outpoint.optional().describe('The origin of an image.'),
      })
      .describe('The profile that the holder claims.'),
    lockingKey: hex.describe('The public key that can spend the output.'),
    signature: hex.describe('The signature over the fields of the script, in DER.'),
    spent: outpoint
      .optional()
      .describe('The previous outpoint of the name. The key ID is `opns:` followed by it.'),
  })
  .describe(
    'The identity binding of BRC-174 in the script. This host verifies neither the key nor the signature: see docs/spec/protocol.md.',
  )

/** The record of a name: its mint, and the current state of its ordinal. Missing fields are unknown or empty. */
export const nameRecordShape = z
  .strictObject({
    name,
    origin: outpoint.describe('The output that minted the name.'),
    tip: z
      .strictObject({
        outpoint,
        owner: address.optional(),
        script: z
          .string()
          .meta({ pattern: '^([0-9a-f]{2})*$' })
          .optional()
          .describe(
            'The locking script. Absent if it is over 64 KiB, or at too high an offset in a large transaction.',
          ),
        binding: bindingShape.optional(),
        ...TIER_FIELDS,
        spent: z
          .boolean()
          .describe(
            'Whether this output is spent: the ordinal was burned, or its next output is not known here.',
          ),
      })
      .optional()
      .describe(
        'The current output of its ordinal. Absent if this host does not follow the ordinals of names.',
      ),
    sequence: count.optional().describe('The number of steps of its ordinal.'),
    map: map.optional().describe('The merged MAP of its ordinal.'),
    mapTruncated: mapTruncated.optional(),
    node: outpoint.optional().describe('The live node of the name, from which longer names are mined.'),
    height: blockHeight.optional(),
    ...TIER_FIELDS,
    ...NAMES_FIELDS,
  })
  .meta({ dependentRequired: { tip: ['sequence', 'map'], sequence: ['tip'], map: ['tip'] } })

export type FullNameRecord = Omit<z.output<typeof nameRecordShape>, keyof typeof NAMES_FIELDS>

/** The dependencies of a record. A name without a tip or a node may still get one. */
export function dependenciesOfName({ origin, tip, node }: FullNameRecord): Dependency[] {
  const spent = [tip?.outpoint, node].map((each) =>
    each === undefined ? dependency.all : dependency.spend(parseOutpoint(each)),
  )
  const origins = [origin, tip?.outpoint].flatMap((each) =>
    each === undefined ? [] : dependenciesOfTier(parseOutpoint(each).txid),
  )
  return [dependency.lineages, ...origins, ...spent]
}

/** The record of a name; undefined if it is not claimed. Needs several reads of one snapshot. */
export function nameRecord(
  { store, network, maxMapBytes }: GatewayParts,
  name: string,
): FullNameRecord | undefined {
  const origin = store.names.originOf(name)
  if (origin === undefined) return undefined
  const step = store.ordinals.at(origin, TIP)
  const node = store.names.liveNode(name)
  const height = store.transactions.heightOf(origin.txid)
  const script = step && storedOutput(step.output.outpoint, store.transactions)?.lockingScript
  return {
    name,
    origin: formatOutpoint(origin),
    ...(step && {
      tip: tipRecord({ store, network }, step.output, script),
      sequence: step.sequence,
      ...servedMap(store.metadata.merged(step) ?? EMPTY_MAP, maxMapBytes),
    }),
    ...(node && { node: formatOutpoint(node) }),
    ...(height !== undefined && { height }),
    ...tierFields(store, origin.txid),
  }
}

function tipRecord(
  { store, network }: Pick<GatewayParts, 'store' | 'network'>,
  { outpoint, owner }: OutputRecord,
  script: Uint8Array | undefined,
): FullNameRecord['tip'] {
  return {
    outpoint: formatOutpoint(outpoint),
    ...(owner !== undefined && { owner: ownerAddress(owner, network) }),
    ...(script && {
      script: toHex(script),
      ...bindingRecord(script, () => store.ordinals.previousOf(outpoint)),
    }),
    spent: store.transactions.spenderOf(outpoint) !== undefined,
    ...tierFields(store, outpoint.txid),
  }
}

/** The identity in a script, if it is the lock of a binding. */
function bindingRecord(
  script: Uint8Array,
  whatItSpent: () => Outpoint | undefined,
): { binding?: z.output<typeof bindingShape> } {
  const binding = readBinding(script)
  if (binding === undefined) return {}
  const spent = whatItSpent()
  const { identityKey, layout, profile, lockingKey, signature } = binding
  const { avatar, ...said } = profile
  return {
    binding: {
      ...{ identityKey, layout, lockingKey, signature: toHex(signature) },
      profile: { ...said, ...(avatar && { avatar: formatOutpoint(avatar) }) },
      ...(spent && { spent: formatOutpoint(spent) }),
    },
  }
}

/** Cached, as encoding an address takes two hashes, and owners recur. With `max`, the cache would allocate all memory up front. */
const addresses = new LRUCache<string, string>({ maxSize: 10_000, sizeCalculation: () => 1 })

/** The address of a public key hash in hex. */
export function ownerAddress(owner: string, network: Network): string {
  const key = `${network} ${owner}`
  const address = addresses.get(key) ?? encodeAddress(owner, network, nativeHash256)
  addresses.set(key, address)
  return address
}
