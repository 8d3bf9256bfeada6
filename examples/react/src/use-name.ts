import { createVerifiedFetch, type ResolvedName, resolveName } from 'minetree-client'
import { serverDeployment } from 'minetree-client/mining'
import { useEffect, useState } from 'react'

export type NameState =
  | { kind: 'searching' }
  | { kind: 'found'; resolved: ResolvedName; text: string }
  | { kind: 'failed'; message: string }

/** What a name shows, verified. A search that nobody waits for any more is cancelled. */
export function useName(server: string, name: string): NameState {
  const [state, setState] = useState<NameState>({ kind: 'searching' })
  useEffect(() => {
    const stop = new AbortController()
    setState({ kind: 'searching' })
    lookUp(server, name, stop.signal).then(setState, (error: Error) => {
      if (!stop.signal.aborted) setState({ kind: 'failed', message: error.message })
    })
    return () => stop.abort()
  }, [server, name])
  return state
}

async function lookUp(server: string, name: string, signal: AbortSignal): Promise<NameState> {
  // A local network says which tree it has. On the live tree, your app says it: deploymentOf(PROFILES.mainnet).
  const { deployment, profile } = await serverDeployment(server, {}, { signal })
  const trust = { deployment, chainTracker: 'scripts only' } as const
  const resolved = await resolveName({ ...trust, name, sources: [server], signal })
  const verifiedFetch = createVerifiedFetch({ ...trust, profile, gateways: [server] })
  const response = await verifiedFetch(name, { signal })
  return { kind: 'found', resolved, text: await response.text() }
}
