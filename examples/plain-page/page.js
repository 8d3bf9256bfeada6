import { createVerifiedFetch, formatOutpoint, resolveName } from 'minetree-client'
import { serverDeployment } from 'minetree-client/mining'

const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const content = document.querySelector('pre')

let last = new AbortController()

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  // Another search ends the last one at once.
  last.abort()
  last = new AbortController()
  const { signal } = last
  const { server, name } = Object.fromEntries(new FormData(form))
  status.textContent = `Looking up ${name}…`
  content.textContent = ''
  try {
    // A local network says which tree it has. On the live tree, your app says it: deploymentOf(PROFILES.mainnet).
    const { deployment, profile } = await serverDeployment(server, {}, { signal })
    const trust = { deployment, chainTracker: 'scripts only' }
    const { tip, identity } = await resolveName({ ...trust, name, sources: [server], signal })
    const owner = identity.state === 'bound' ? identity.identityKey : (tip.owner ?? 'a script')
    status.textContent = `${name} is verified at ${formatOutpoint(tip.tip)} and belongs to ${owner}`
    const verifiedFetch = createVerifiedFetch({ ...trust, profile, gateways: [server] })
    const response = await verifiedFetch(name, { signal })
    content.textContent = await response.text()
  } catch (error) {
    if (!signal.aborted) status.textContent = error.message
  }
})
