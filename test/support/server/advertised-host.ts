import { PrivateKey } from '@bsv/sdk'
import { type Advertisement, advertisementLock } from '../../../src/server/discovery/advertisement.js'
import { wantedAdvertisements } from '../../../src/server/discovery/discovery.js'
import type { FakeChain, FakeTransaction } from '../protocol/fake-chain.js'

/** The key of a host under test. */
export const HOST_KEY = new PrivateKey(11)

/** A transaction with tokens of a key; by default, all that a host advertises at a URL. */
export async function tokensOf(
  chain: FakeChain,
  {
    url,
    key = HOST_KEY,
    tokens = wantedAdvertisements({ url, followsTree: true }),
  }: { url: string; key?: PrivateKey; tokens?: Advertisement[] },
): Promise<FakeTransaction> {
  const locks = await Promise.all(tokens.map((token) => advertisementLock(key, token)))
  return chain.spend({
    inputs: [],
    outputs: locks.map((lock) => ({ satoshis: 1, lockingScript: Uint8Array.from(lock.toBinary()) })),
  })
}
