/* A box with two cards, as far as the gateway asks NVML: one counts its energy, the other tells its power. */

#include <stdio.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3 };
typedef struct card { int index; } *card;

static struct card cards[] = {{0}, {1}};
static unsigned long long reads;

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, card *device) { *device = &cards[index]; return SUCCESS; }

int nvmlDeviceGetUUID(card device, char *uuid, unsigned length)
{
    snprintf(uuid, length, "GPU-fake-%d", device->index);
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(card device, unsigned long long *millijoules)
{
    if (device->index != 0)
        return NOT_SUPPORTED;
    *millijoules = 1000000 + 1000 * ++reads;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(card device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 75500;
    return SUCCESS;
}
