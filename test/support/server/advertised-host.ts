import { PrivateKey } from '@bsv/sdk'
import {
  type Advertisement,
  APPROVAL_HEADER,
  advertisementLock,
  approvalOf,
} from '../../../src/server/discovery/advertisement.js'
import { wantedAdvertisements } from '../../../src/server/discovery/discovery.js'
import { beefOf, type FakeChain, type FakeTransaction } from '../protocol/fake-chain.js'
import { type Answer, submission, type TestServer } from './test-server.js'

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
  return chain.spend({ outputs: locks.map((lock) => Uint8Array.from(lock.toBinary())) })
}

/** Submits a transaction with tokens, and says by the key of the host that it advertises with it. */
export async function advertise(
  server: Pick<TestServer, 'ask'>,
  transaction: FakeTransaction,
  key: PrivateKey = HOST_KEY,
): Promise<Answer> {
  const { txid, signature } = approvalOf(key, transaction.txid)
  const sent = submission(beefOf(transaction), ['tm_ship', 'tm_slap'])
  return await server.ask('/submit', {
    ...sent,
    headers: { ...sent.headers, [APPROVAL_HEADER]: `${txid}.${signature}` },
  })
}
