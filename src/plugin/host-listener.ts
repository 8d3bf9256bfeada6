import type { RequestHandler } from 'express'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import { readBeef, readProof } from '../../backend/src/graph/read-beef.js'
import { graphRecords, type Proof, type TransactionRecord } from '../../backend/src/graph/records.js'
import { admittedTransactions } from '../../backend/src/graph/transaction-records.js'
import { fromHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'

/** The part of an Express app that is used, which Express 4 has too. */
interface ListenedApp {
  use(handler: RequestHandler): unknown
}

/** What a chain tracker of any copy of the SDK does. */
interface RootChecker {
  isValidRootForHeight(root: string, height: number): Promise<boolean>
}

export interface HostListenerOptions {
  /** Checks proofs from `/arc-ingest`, which an engine does not; the host's own. `scripts only` believes all of them. */
  chainTracker: RootChecker | 'scripts only'
  /** Called if something that the host accepted could not be recorded. */
  onError?: (error: unknown) => void
}

type Listen = (body: unknown) => Promise<void>

/**
 * Passes on to the index what a host's engine keeps to itself: merkle proofs of transactions that it knows, whether they come
 * to `/arc-ingest` or with the transaction to `/submit`, and the end of a ban (`/admin/unban`), which lifts the block that
 * the ban caused.
 *
 * Call it before `start`, as `attachGateway`. It reads no body and changes no answer. It looks at requests that the host has
 * answered with 200, and holds that answer back until the index has what it says.
 *
 * @param stores Those of `storesOf`.
 */
export function attachHostListener(
  app: ListenedApp,
  { graph }: { graph: HostStore },
  { chainTracker, onError = () => {} }: HostListenerOptions,
): void {
  const listeners: Record<string, Listen> = {
    '/submit': async (body) => {
      if (body instanceof Uint8Array) await recordProofs(graph, admittedTransactions(readBeef(body)))
    },
    '/arc-ingest': async (body) => {
      const { txid, merklePath } = body as { txid: string; merklePath: string }
      const proof = readProof({ txid, bump: fromHex(merklePath) })
      if (!(await isInChain(proof, chainTracker))) return
      const known = await graph.transactions.get(txid)
      if (known !== undefined) await recordProofs(graph, [{ ...known, proof }])
    },
    '/admin/unban': async (body) => {
      const { type, value } = body as { type: string; value: string }
      if (type === 'outpoint') await liftEviction(graph, value.replace('.', '_'))
    },
  }
  app.use((request, response, next) => {
    const listen = request.method === 'POST' ? listeners[request.path] : undefined
    if (listen !== undefined) {
      const end = response.end.bind(response) as (...args: unknown[]) => typeof response
      const ended = (...args: unknown[]): typeof response => {
        response.end = end as typeof response.end
        if (response.statusCode !== 200) return end(...args)
        listen(request.body)
          .catch(onError)
          .finally(() => end(...args))
        return response
      }
      response.end = ended as typeof response.end
    }
    next()
  })
}

/** Records proofs of transactions that the index has; it takes no transaction from here that a topic manager has not seen. */
async function recordProofs(graph: HostStore, transactions: TransactionRecord[]): Promise<void> {
  for (const transaction of transactions) {
    const { txid, proof } = transaction
    if (proof === undefined || !(await graph.transactions.has(txid))) continue
    await graph.record(graphRecords({ transactions: [transaction] }))
  }
  while (await graph.backlog.workOff()) {
    // Each call does a part of it.
  }
}

async function isInChain(
  { root, height }: Proof,
  tracker: HostListenerOptions['chainTracker'],
): Promise<boolean> {
  return tracker === 'scripts only' || (await tracker.isValidRootForHeight(root, height))
}

/** How the store marks an output that a host has evicted, and not its operator blocked. */
const EVICTED = 'evicted'
/** How many blocked outputs of one transaction are looked at. */
const MOST_BLOCKED = 1000

/** Unblocks an output, unless the operator has blocked it for a reason. */
async function liftEviction({ blocklist }: HostStore, text: string): Promise<void> {
  const outpoint = parseOutpoint(text)
  const value = formatOutpoint(outpoint)
  const kind = 'outpoint'
  const blocked = await blocklist.page({
    kind,
    after: { kind, value: `${outpoint.txid}_` },
    limit: MOST_BLOCKED,
  })
  if (blocked.some((each) => each.value === value && each.reason === EVICTED))
    await blocklist.remove({ kind, value })
}
