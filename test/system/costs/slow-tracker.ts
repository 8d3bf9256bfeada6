import { setTimeout as wait } from 'node:timers/promises'
import { listening } from '../../support/server/connections.js'
import { headersServiceBlock } from '../../support/server/header-service.js'

/**
 * Runs with a headers service whose answers take a while.
 *
 * @param delay In milliseconds; without one, there is no service, and `run` gets no URL.
 */
export async function withSlowTracker<Result>(
  delay: number | undefined,
  run: (url: string | undefined) => Promise<Result>,
): Promise<Result> {
  if (delay === undefined) return await run(undefined)
  const tracker = await listening(({ url = '' }, response) => {
    void wait(delay).then(() => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(answerTo(new URL(url, 'http://127.0.0.1'))))
    })
  })
  try {
    return await run(tracker.url)
  } finally {
    await tracker.close()
  }
}

/** The roots of the blocks that it has. */
const roots = new Map<number, string>()

/** Has it confirm the block that a proof leads to. */
export function confirmed<Proven extends { height: number; root: string }>(proof: Proven): Proven {
  roots.set(proof.height, proof.root)
  return proof
}

/** As a Block Headers Service answers. */
function answerTo({ pathname, searchParams }: URL): unknown {
  if (pathname.endsWith('/chain/tip/longest')) return { header: { hash: 'ab'.repeat(32) }, height: 900_000 }
  return [headersServiceBlock(roots.get(Number(searchParams.get('height'))) ?? '00'.repeat(32))]
}
