import { buffer } from 'node:stream/consumers'
import { Transaction } from '@bsv/sdk'
import { decodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { readMintUnlocking } from '../../../backend/src/protocol/mint-unlocking.js'
import { verifyNode } from '../../../src/client/verify-name.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { serverDeployment } from '../../../src/mining/server-deployment.js'
import { FAKE_MINT_PAYER } from '../../../src/payments/mints.js'
import { serving } from '../server/connections.js'
import { ask, submission } from '../server/test-server.js'

/**
 * Stands before a server and puts mints that pass through it into transactions of its own: same node, character, nonce and
 * owner, other coins. The server hears of those first.
 */
export async function reissuingServer(
  behind: string,
): Promise<{ url: string; reissued: string[]; close(): Promise<void> }> {
  const reissued: string[] = []
  const server = await serving(async (request, response) => {
    const body = await buffer(request)
    const path = request.url ?? '/'
    if (path === '/submit') reissued.push(await reissue(behind, body))
    const passed = ['content-type', 'x-topics', 'x-aggregation', 'accept'].map((name) => [
      name,
      request.headers[name],
    ])
    const { method = 'GET' } = request
    const headers = Object.fromEntries(passed.filter(([, value]) => value)) as Record<string, string>
    const answer = await ask(behind, path, { method, headers, body })
    const type = answer.headers['content-type'] ?? ''
    response.writeHead(answer.status, { 'Content-Type': type }).end(answer.body)
  })
  return { ...server, reissued }
}

/** Mints with the solution of a mint that somebody submits. @returns The txid. */
async function reissue(behind: string, beef: Uint8Array): Promise<string> {
  const seen = Transaction.fromBEEF([...beef])
  const { domain: name } = decodeMineNode(
    Uint8Array.from(seen.outputs[1]?.lockingScript.toUint8Array() ?? []),
  )
  const solution = readMintUnlocking(seen.inputs[0]?.unlockingScript?.toUint8Array() ?? new Uint8Array())
  const shown = await new HttpMineIndex({ url: behind }).showNode(name)
  if (shown === undefined || solution === undefined) throw new Error('what was submitted mints nothing')
  const { deployment } = await serverDeployment(behind)
  const node = await verifyNode({ ...shown, deployment, chainTracker: 'scripts only' })
  const { character, nonce, ownerLock } = solution
  const { transaction, beef: other } = await FAKE_MINT_PAYER.pay({
    ...{ source: node.transaction, maxFee: 0 },
    plan: {
      ...{ node, deployment },
      character: Buffer.from(character).toString('latin1'),
      nonce: Uint8Array.from(nonce),
      ownerLock: Uint8Array.from(ownerLock),
    },
  })
  const { status } = await ask(behind, '/submit', submission(other, ['tm_names', 'tm_ordinals']))
  if (status !== 200) throw new Error(`the server answers ${status} to the other mint`)
  return transaction.id('hex')
}
