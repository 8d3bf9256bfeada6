import { config } from 'zod'

// Zod looks whether it may compile schemas, which the policy of the page forbids: the browser would report it. This has to
// come before any schema.
config({ jitless: true })
