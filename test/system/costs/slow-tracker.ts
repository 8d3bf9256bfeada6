import { setTimeout as wait } from 'node:timers/promises'
import { listening } from '../../support/server/connections.js'

/**
 * Runs with a headers service that confirms every block, each answer after a while.
 *
 * @param delay In milliseconds; without one, there is no service, and `run` gets no URL.
 */
export async function withSlowTracker<Result>(
  delay: number | undefined,
  run: (url: string | undefined) => Promise<Result>,
): Promise<Result> {
  if (delay === undefined) return await run(undefined)
  const tracker = await listening((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      void wait(delay).then(() => {
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify(answerTo(request.url ?? '', Buffer.concat(chunks))))
      })
    })
  })
  try {
    return await run(tracker.url)
  } finally {
    await tracker.close()
  }
}

/** As the Block Headers Service answers. */
function answerTo(url: string, body: Buffer): unknown {
  if (url.endsWith('/chain/tip/longest')) return { header: {}, state: 'LONGEST_CHAIN', height: 900_000 }
  const asked = JSON.parse(body.toString()) as { blockHeight: number; merkleRoot: string }[]
  const confirmations = asked.map((block) => ({ ...block, blockHash: '', confirmation: 'CONFIRMED' }))
  return { confirmationState: 'CONFIRMED', confirmations }
}
