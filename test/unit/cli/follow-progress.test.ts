import { PassThrough } from 'node:stream'
import picocolors from 'picocolors'
import { vi } from 'vitest'
import { serviceStatus, showCatchingUp } from '../../../src/cli/follow-progress.js'
import { ProgressLine } from '../../../src/cli/output.js'
import { createApp } from '../../../src/server/app.js'
import { chainStatus } from '../../../src/server/telemetry/chain-status.js'
import { saidParts } from '../../support/server/chain-parts.js'
import { listening } from '../../support/server/connections.js'
import { SILENT, useServers } from '../../support/server/test-server.js'

const servers = useServers()

test('a terminal shows it until the host keeps up, and again when it falls behind', () => {
  vi.useFakeTimers()
  try {
    const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 200 })
    let written = ''
    stream.on('data', (chunk: Buffer) => (written += chunk.toString('utf8')))
    const shown = (): string => {
      const now = written
      written = ''
      return now
    }
    const { said, parts } = saidParts()
    const stop = new AbortController()
    const line = new ProgressLine(stream, picocolors.createColors(false))
    showCatchingUp({ line, status: () => chainStatus(parts), signal: stop.signal })
    vi.advanceTimersByTime(1000)
    expect(shown()).toContain('catching up: 1,204 mints')
    said.follow.state = 'keeping up'
    vi.advanceTimersByTime(1000)
    expect(shown()).toBe('\r\x1b[K')
    vi.advanceTimersByTime(1000)
    expect(shown()).toBe('')
    said.follow.state = 'catching up'
    vi.advanceTimersByTime(1000)
    expect(shown()).toContain('catching up')
    stop.abort()
    expect(shown()).toBe('\r\x1b[K')
    vi.advanceTimersByTime(10_000)
    expect(shown()).toBe('')
  } finally {
    vi.useRealTimers()
  }
})

describe('the status of a running service', () => {
  test('is what its /health says of the chain', async () => {
    const { config, overlay, graph } = (await servers.start()).node
    const { said, parts } = saidParts()
    const ready = { isReady: true }
    const ping = async (): Promise<void> => {
      if (!ready.isReady) throw new Error('away')
    }
    const app = createApp({ config, overlay, graph, ping, chain: parts, logger: SILENT })
    const { url, close } = await listening(app)
    const expected = { height: 900_120, lag: 120, contradictions: 6, ...said }
    expect(await serviceStatus(url)).toEqual(expected)
    ready.isReady = false
    expect(await serviceStatus(url)).toEqual(expected)
    await close()
    expect(await serviceStatus(url)).toBeUndefined()
  })

  test('is none where no service answers that follows the chain', async () => {
    expect(await serviceStatus((await servers.start()).url)).toBeUndefined()
    const long = `{"follow":"${'x'.repeat(2 ** 20)}"}`
    for (const body of ['', 'hello', 'null', '{"follow":{"state":"done"}}', long]) {
      const { url, close } = await listening((_, response) => void response.end(body))
      expect(await serviceStatus(url)).toBeUndefined()
      await close()
    }
  })
})
