"""Every name that users and other programs meet: driver, gate, annotations, labels, attributes."""

DRIVER = "gpu.quadrant.dev"
DOMAIN = "quadrant.dev"

PLACEMENT_GATE = f"{DOMAIN}/placement"
# Every pod of ours carries this label, so that the controller need not watch all pods.
POD_LABEL = f"{DOMAIN}/placed"
# "true" on the pod of the leading controller: the Service of the commit hook selects it.
LEADER_LABEL = f"{DOMAIN}/leader"
NODE_POLICY = f"{DOMAIN}/node-policy"
GPU_POLICY = f"{DOMAIN}/gpu-policy"
HAMI_NODE_POLICY = "hami.io/node-scheduler-policy"
HAMI_GPU_POLICY = "hami.io/gpu-scheduler-policy"
SCORING_WEIGHTS = f"{DOMAIN}/scoring-weights"
HAMI_SCORING_WEIGHTS = "hami.io/device-scoring-weights"
# Which cards a pod may get, in HAMi's words.
HAMI_USE_TYPE = "nvidia.com/use-gputype"
HAMI_NO_TYPE = "nvidia.com/nouse-gputype"
HAMI_USE_UUID = "nvidia.com/use-gpuuuid"
HAMI_NO_UUID = "nvidia.com/nouse-gpuuuid"
HAMI_NUMA_BIND = "nvidia.com/numa-bind"
HAMI_MODE = "nvidia.com/vgpu-mode"
# What a pod asked for before it was translated, and which request serves which resource now.
ORIGINAL_RESOURCES = f"{DOMAIN}/original-resources"
EXTENDED_RESOURCES = f"{DOMAIN}/extended-resources"
TEMPLATE_LABEL = f"{DOMAIN}/translated"
# When a pod was last created from a template of ours.
LAST_USED = f"{DOMAIN}/last-used"
# On a node: names of devices that nothing new may go to, joined by commas. The plugin taints them.
CORDONED = f"{DOMAIN}/cordoned"
# A value that never repeats; patched onto a claim to make the scheduler see it (design, rule 8),
# and to fence off an answer that may still land (rule 4).
FENCE = f"{DOMAIN}/fence"
# A label of the taint rules of ours, and the key of their taint.
HELD = f"{DOMAIN}/held"
# In a CDI file: the claim's entry in the checkpoint.
CLAIM_ENTRY = f"{DOMAIN}/claim"
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

# Attributes and capacities of a device; unqualified names are in the driver's own domain.
UUID = "uuid"
# The card that a MIG device is a part of.
PARENT_UUID = "parentUUID"
PRODUCT_NAME = "productName"
INDEX = "index"
NVLINK_GROUP = "nvlinkGroup"
# By the address of its upstream port; the API has no standard name for it.
PCIE_SWITCH = "pcieSwitch"
MIG_CAPABLE = "migCapable"
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NUMA_NODE = "resource.kubernetes.io/numaNode"
MEMORY = "memory"
CORES = "cores"

# Keys of taints that a node plugin publishes, below the driver's name.
UNHEALTHY_TAINT = "unhealthy"
OCCUPIED_TAINT = "occupied"
CORDONED_TAINT = "cordoned"
